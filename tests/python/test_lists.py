"""Lists and tuples: every number is exact or refused, and a tuple of arrays is read as columns."""

import array as python_array
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from oracle import same

import tensorhash as th
import tensorhash.core as o3c
from tensorhash import coords as thc

INEXACT = [2**53, 2**53 + 1, 0.5]


@pytest.mark.parametrize(
    "values, row", [(INEXACT, 1), ([[1, 2], [0.5, 2**60 + 1]], 1), ([np.int64(2**53 + 1), 0.5], 0)]
)
def test_an_integer_that_a_list_of_floats_would_round_is_refused(values, row):
    message = rf"row {row}: expected numbers that float64 holds exactly, got \d+"
    for call, argument in (
        (th.unique, "array"),
        (lambda a: th.HashMap.from_items(a, np.zeros(len(a))), "keys"),
        (lambda a: th.ShardedHashMap.from_items(a, np.zeros(len(a)), devices=["cpu:0"]), "keys"),
        (lambda a: thc.voxelize(np.zeros((len(a), 1)), 1.0, features=a), "features"),
        (lambda a: thc.knn_search(a, [[0.0]], 1), "points"),
    ):
        with pytest.raises(ValueError, match=f"^{argument}: {message}"):
            call(values)


def _torch_scalars(values):
    return [*pytest.importorskip("torch").tensor(values)]


SCALARS = {
    "numpy": lambda values: [np.array(value) for value in values],
    "torch": _torch_scalars,
    "core": lambda values: [o3c.Tensor(value, o3c.int64) for value in values],
    "masked": lambda values: [np.ma.masked_array(value) for value in values],
}


@pytest.mark.parametrize("kind", SCALARS)
def test_arrays_of_rank_0_in_a_list_are_numbers_and_never_rounded(kind):
    big, one = SCALARS[kind]([2**53, 2**53 + 1]), SCALARS[kind]([2**53 + 1])
    refused = "expected numbers that float64 holds exactly, got 9007199254740993"
    for values in ([*big, 0.5], [big, [0.5, 0.5]]):
        for call in (
            th.unique,
            lambda a: th.HashMap.from_items(a, np.zeros(len(a))),
            lambda a: thc.voxelize(np.zeros((len(a), 1)), 1.0, features=a),
        ):
            with pytest.raises(ValueError, match=refused):
                call(values)
    for shape, keys in (((), big), ((1,), [one])):
        table = th.HashSet(0, "float64", shape)
        for call in (table.insert, table.find, table.erase):
            with pytest.raises(ValueError, match=refused):
                call(keys)
    with pytest.raises(ValueError, match=refused):
        o3c.Tensor([*big, 0.5])
    same(th.unique([*big, *big]), np.array([2**53, 2**53 + 1]))
    same(th.HashSet(0, "int64", ()).insert([*big, *one])[0], np.int32([0, 1, 1]))
    same(th.HashSet(0, "float64", ()).insert(SCALARS[kind]([3, 4, 3]))[0], np.int32([0, 1, 0]))
    with pytest.raises(TypeError, match="expected int64, got the float 0.5"):
        th.HashSet(0, "int64", ()).insert([*big, np.array(0.5)])


def test_an_integer_key_is_never_rounded_to_a_float_of_the_table():
    for dtype, bad in (("float64", 2**53 + 1), ("float32", 2**24 + 1), ("float64", -(2**60) - 1)):
        table = th.HashSet(4, dtype, ())
        for keys in ([0, bad], [0.5, bad]):
            for call in (table.insert, table.find, table.contains, table.erase):
                with pytest.raises(
                    ValueError, match=f"keys: row 1: .*{dtype} holds exactly.*{bad}"
                ):
                    call(keys)
        with pytest.raises(ValueError, match=f"key: .*{dtype} holds exactly, got {bad}"):
            assert bad in table
        assert table.size() == 0
        # Floats are rounded as usual, and integers that a float can hold are accepted.
        assert table.insert([0.1, 2**24, -(2**70), 3])[1].all()
        assert 2**24 in table
    values = th.HashMap(4, "int64", (), "float32", ())
    values.insert([1], [2**24 + 1])
    assert values.get([1]).tolist() == [2**24]


def test_integers_beyond_int64_are_uint64_if_all_fit():
    same(th.unique([2**63, 1, 2**63, 2**64 - 1]), np.array([2**63, 1, 2**64 - 1], np.uint64))
    same(th.HashMap.from_items([2**63 + 1, 5], [1, 2]).keys(), np.array([2**63 + 1, 5], np.uint64))
    with pytest.raises(ValueError, match=f"array: .*got both -1 and {2**63}"):
        th.unique([2**63, -1])
    for bad in (2**64, -(2**63) - 1, 10**400):
        with pytest.raises(
            ValueError, match=f"array: row 1: expected numbers that fit 64 bits, got {bad}"
        ):
            th.unique([0, bad])


@pytest.mark.parametrize("bad", [None, "1", Decimal(1), Fraction(1, 2), np.datetime64("NaT"), b"1"])
def test_items_that_are_not_numbers_are_refused_and_never_become_nan(bad):
    for values in ([1.0, bad], [[1], [bad]], [1, bad]):
        for call in (
            th.unique,
            th.HashSet(4, "float64", ()).insert,
            th.HashSet(4, "int64", ()).insert,
            lambda a: th.HashMap(4, "int64", (), "float32", ()).insert([1, 2], a),
            lambda a: thc.voxelize(a, 1.0),
        ):
            with pytest.raises(TypeError, match="expected (a number|numbers), got"):
                call(values)


def test_nulls_in_arrays_inside_a_list_are_refused():
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    for values in ([masked, masked], [[1, 2], masked], [1, np.ma.masked]):
        for call in (th.unique, th.HashSet(4, "int64", (2,)).insert):
            with pytest.raises(
                ValueError, match=r"(array|keys)\[\d\]: expected no masked entries, got 1"
            ):
                call(values)
    with pytest.raises(ValueError, match="keys: expected no masked entries, got 1; drop them with"):
        th.HashSet(4, "int64", ()).insert(masked)


def test_a_list_of_arrays_is_a_list_of_rows():
    rows = [np.array([1, 2]), np.array([3, 4]), [1, 2]]
    same(th.unique(rows), np.array([[1, 2], [3, 4]]))
    same(th.HashSet(4, "int64", (2,)).insert(rows)[0], np.int32([0, 1, 0]))
    with pytest.raises(
        ValueError, match="array: row 0: expected numbers that float64 holds exactly"
    ):
        th.unique([np.array([2**53 + 1]), np.array([0.5])])


A, B, C = np.array([1, 2, 1]), np.array([5, 6, 5]), np.array([9, 9, 9])
ROWS = np.array([[1, 5, 9], [2, 6, 9]])


def test_a_tuple_of_arrays_is_a_tuple_of_columns():
    same(th.unique((A, B, C)), ROWS)
    same(th.unique((A,)), np.array([[1], [2]]))
    table = th.HashMap(4, "int64", (3,), "int64", (2,))
    same(table.insert((A, B, C), (A, B))[0], np.int32([0, 1, 0]))
    same(table.keys(), ROWS)
    same(table.get((A, B, C)), np.stack([A, B], axis=1))
    assert table.contains((A, B, C)).all()
    assert (A[:1], B[:1], C[:1]) in table
    same(th.HashMap.from_items((A, B, C), (A, B)).keys(), ROWS)
    assert len(th.HashMap.from_items((A, B, C), (A, B)).items()[1]) == 2
    assert table.erase((A, B, C)).tolist() == [True, True, False]
    same(th.HashMap(4, "int64", (), "int64", ()).insert((A,), (B,))[0], np.int32([0, 1, 0]))


def test_a_tuple_of_columns_is_coordinates_and_points():
    batched = (np.zeros(3, np.int64), A, B)
    grid = np.stack(batched, axis=1)
    same(thc.unique_coords(batched), grid[:2])
    same(thc.stride_coords(batched, 2)[0], thc.stride_coords(grid, 2)[0])
    same(thc.expand_coords(batched, 3)[0], thc.expand_coords(grid, 3)[0])
    same(thc.CoordTable.from_coords(batched).search(batched), np.int32([0, 1, 0]))
    same(
        thc.generate_kernel_map(batched, batched, 1, 3, duplicates="first").in_maps,
        thc.generate_kernel_map(grid, grid, 1, 3, duplicates="first").in_maps,
    )
    points = (A * 0.5, B * 0.5, C * 0.5)
    same(thc.voxelize(points, 1.0).coords, thc.voxelize(np.stack(points, axis=1), 1.0).coords)
    same(thc.knn_search(points, points, 1).distances, np.zeros(3))


def test_numbers_and_lists_in_a_tuple_are_rows_as_before():
    same(th.unique((7, 3, 7)), np.array([7, 3]))
    same(th.unique(((1, 2), (3, 4), (1, 2))), np.array([[1, 2], [3, 4]]))
    same(th.unique(([1, 2], [3, 4])), np.array([[1, 2], [3, 4]]))
    same(th.unique((np.int64(7), np.array(3))), np.array([7, 3]))


def test_results_for_columns_use_the_framework_of_the_first():
    torch = pytest.importorskip("torch")
    columns = torch.tensor([1, 2, 1]), torch.tensor([5, 6, 5])
    assert torch.equal(th.unique(columns), torch.tensor([[1, 5], [2, 6]]))
    assert isinstance(th.unique((A, columns[1])), np.ndarray)
    assert isinstance(th.unique((o3c.Tensor(A), o3c.Tensor(B))), o3c.Tensor)
    same(th.unique((memoryview(A), python_array.array("q", [5, 6, 5]))), ROWS[:, :2])


@pytest.mark.parametrize(
    "columns, error, text",
    [
        ((A, B[:2]), ValueError, r"array\[1\]: expected 3 rows as array\[0\] has, got 2"),
        ((A, ROWS), ValueError, r"array\[1\]: expected a 1-D array.*got shape \(2, 3\).*list"),
        (
            (A, [1, 2, 3]),
            TypeError,
            r"array\[1\]: expected an array.*got list.*for rows pass a list",
        ),
        ((A, 5), TypeError, r"array\[1\]: expected an array.*got int"),
        ((A, None), TypeError, r"array\[1\]: expected an array.*got NoneType"),
        (
            (A, B * 0.5),
            TypeError,
            r"array: expected columns that one dtype holds exactly, got int64",
        ),
        ((A, B.astype("u8")), TypeError, r"got int64 in array\[0\] and uint64 in array\[1\]"),
        ((A, B.astype("U")), TypeError, r"array"),
        (
            (A, np.ma.masked_array(B, mask=[True, False, False])),
            ValueError,
            r"array\[1\]: expected no masked entries, got 1",
        ),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(columns, error, text):
    with pytest.raises(error, match=text):
        th.unique(columns)


def test_columns_of_another_dtype_than_the_tables_are_refused_by_number():
    table = th.HashSet(4, "int64", (2,))
    with pytest.raises(
        TypeError, match=r"keys\[1\]: expected int64, got int32; cast with keys\[1\]\.astype"
    ):
        table.insert((A, B.astype("i4")))
    same(table.insert((A, B.astype(">i8")))[0], np.int32([0, 1, 0]))


def test_columns_of_mixed_narrow_dtypes_are_joined_exactly():
    same(th.unique((A.astype("i4"), B * 0.5)), np.array([[1, 2.5], [2, 3.0]]))
    same(th.unique((A.astype("i2"), B.astype("i8"))), ROWS[:, :2])
    same(th.unique((A > 1, B)), np.array([[0, 5], [1, 6]]))
