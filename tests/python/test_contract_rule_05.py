"""Rule 5: strides, byte order, dtype, shape and range are honoured or refused, never misread."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle import KEY_DTYPES, Oracle, check, same, same_pair

import tensorhash

GRID = np.arange(240, dtype=np.int64).reshape(20, 12)
LAYOUTS = {
    "a column": GRID[:, 0:1],
    "every second row": GRID[::2, 1:2],
    "reversed rows": GRID[::-1, 3:4],
    "a transposed row": GRID[2:3].T,
    "Fortran order": np.asfortranarray(GRID[:, 5:6]),
    "stride zero": np.broadcast_to(np.int64([[9]]), (30, 1)),
    "offset": GRID.reshape(-1)[7:31].reshape(-1, 1),
    "read-only": np.frombuffer(GRID.tobytes(), dtype=np.int64).reshape(-1, 1),
    "big-endian": GRID[:, 0:1].astype(">i8"),
    "big-endian strided": GRID.astype(">i8")[::-3, 4:5],
    "a field of records": np.array(
        [(1, 2.0, 3), (4, 5.0, 6)], dtype=[("a", "i1"), ("b", "f8"), ("c", "i8")]
    )["c"][:, None],
    "unaligned": np.frombuffer(b"x" + GRID.tobytes(), dtype=np.int64, count=20, offset=1)[:, None],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rule_05_every_layout_of_keys_and_values_is_read_as_numpy_reads_it(layout):
    array = LAYOUTS[layout]
    plain = np.ascontiguousarray(array, dtype=np.int64)
    untouched = array.tobytes()
    table = tensorhash.HashMap(0, "int64", (1,), "int64", (1,))
    oracle = Oracle()
    same_pair(table.insert(array, array), oracle.insert(plain, plain))
    check(table, oracle)
    same_pair(table.find(array[::-1]), oracle.find(plain[::-1]))
    same(table.get(array), plain)
    same_pair(table.accumulate(array, array), oracle.accumulate(plain, plain, np.add))
    check(table, oracle)
    same(table.erase(array), oracle.erase(plain))
    assert array.tobytes() == untouched


@given(
    hnp.arrays(np.int16, (7, 6), elements=st.integers(-3, 3)),
    st.tuples(*[st.sampled_from([slice(None), slice(None, None, -1), slice(1, None, 2)])] * 2),
    st.booleans(),
)
def test_rule_05_any_slicing_of_wide_keys_is_honoured(array, slices, transposed):
    keys = (array.T if transposed else array)[slices]
    table = tensorhash.HashSet(0, "int16", (keys.shape[1],))
    oracle = Oracle()
    expected = oracle.insert(np.ascontiguousarray(keys), np.zeros(len(keys)))
    same_pair(table.insert(keys), expected)
    same(table.keys(), np.array([oracle.keys[i] for i in oracle.live()]))


@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_rule_05_keys_of_another_dtype_are_a_type_error_that_says_how_to_cast(dtype):
    table = tensorhash.HashSet(4, dtype, (1,))
    for other in {*KEY_DTYPES, "float16"} - {dtype}:
        with pytest.raises(
            TypeError, match=rf"keys: expected {dtype}, got {other}.*astype"
        ) as error:
            table.insert(np.zeros((3, 1), dtype=other))
        assert f'"{dtype}"' in str(error.value)
    assert table.size() == 0


@pytest.mark.parametrize("other", ["complex64", "datetime64[s]", "S8", "U2", "O", "i4,i4"])
def test_rule_05_arrays_without_numbers_are_a_type_error(other):
    table = tensorhash.HashMap(4, "int64", (1,), "int64", (1,))
    rows = np.zeros((3, 1), dtype=np.int64)
    with pytest.raises(TypeError, match="keys: expected"):
        table.insert(np.zeros((3, 1), dtype=other), rows)
    with pytest.raises(TypeError, match="values: expected"):
        table.insert(rows, np.zeros((3, 1), dtype=other))
    assert table.size() == 0


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 4), (3, 3, 1), (1, 3, 2), (9,), (3, 0), ()])
def test_rule_05_rows_with_another_number_of_elements_are_a_value_error(shape):
    table = tensorhash.HashSet(4, "int64", (3,))
    if np.prod(shape[1:], dtype=int) == 3 and shape:
        assert table.insert(np.zeros(shape, dtype=np.int64))[1].sum() == 1
        return
    with pytest.raises(ValueError, match="keys"):
        table.insert(np.zeros(shape, dtype=np.int64))


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 1, 1)])
def test_rule_05_rows_with_the_right_number_of_elements_in_another_shape_are_accepted(shape):
    for element in [(), (1,), (1, 1)]:
        table = tensorhash.HashMap(4, "int64", element, "int64", element)
        keys = np.arange(5).reshape(shape)
        same(table.insert(keys, keys * 2)[0], np.arange(5, dtype=np.int32))
        same(table.keys(), np.arange(5).reshape(5, *element))
        same(table.get(keys), 2 * np.arange(5).reshape(5, *element))


def test_rule_05_a_flat_row_of_six_is_a_key_of_shape_2_3():
    table = tensorhash.HashSet(4, "int32", (2, 3))
    table.insert(np.arange(12, dtype=np.int32).reshape(2, 6))
    same(table.keys(), np.arange(12, dtype=np.int32).reshape(2, 2, 3))
    same(table.find(np.arange(12, dtype=np.int32).reshape(2, 3, 2))[0], np.int32([0, 1]))


@pytest.mark.parametrize("dtype", [name for name in KEY_DTYPES if "int" in name])
def test_rule_05_no_key_value_is_reserved(dtype):
    info = np.iinfo(dtype)
    special = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, info.max // 2}
    special |= {-1, -2} if info.min else set()
    keys = np.array(sorted(special), dtype=dtype)
    for width in (1, 2, 3):
        table = tensorhash.HashMap(0, dtype, (width,), "int64", ())
        rows = np.repeat(keys[:, None], width, axis=1)
        indices, mask = table.insert(rows, np.arange(len(rows)))
        same(indices, np.arange(len(rows), dtype=np.int32))
        assert mask.all()
        table.validate()
        same(table.get(rows[::-1]), np.arange(len(rows))[::-1])
        assert table.erase(rows[:3]).all()
        same(table.contains(rows), np.arange(len(rows)) >= 3)
        table.insert(rows, np.arange(len(rows)))
        table.validate()
        assert table.size() == len(rows)


def test_rule_05_lists_are_range_checked_and_errors_name_row_and_value():
    table = tensorhash.HashSet(4, "int8", (2,))
    for bad in (128, -129, 2**40, 2**70):
        with pytest.raises(ValueError, match=rf"keys: row 1.*{bad}.*int8"):
            table.insert([[0, 1], [2, bad]])
    table.insert([[-128, 127]])
    with pytest.raises(TypeError, match=r"keys.*1\.5"):
        table.insert([[1, 1.5]])
    assert table.size() == 1
    wide = tensorhash.HashSet(4, "uint64", ())
    wide.insert([2**64 - 1, 0])
    same(wide.keys(), np.array([2**64 - 1, 0], dtype=np.uint64))
    with pytest.raises(ValueError, match="row 0"):
        wide.insert([-1])


def test_rule_05_lists_of_big_integers_keep_every_bit():
    numbers = [2**63 - 1, -(2**63), 2**53 + 1, 0]
    table = tensorhash.HashSet(4, "int64", ())
    table.insert(numbers)
    assert table.keys().tolist() == numbers


def test_rule_05_masked_arrays_are_refused():
    keys = np.ma.masked_array(np.arange(3), mask=[False, True, False])
    with pytest.raises(ValueError, match="keys.*masked"):
        tensorhash.HashSet(4, "int64", ()).insert(keys)


@pytest.mark.parametrize("keys", [None, "abc", b"abcdefgh", 5, object(), {1: 2}, {3}, iter([1])])
def test_rule_05_an_argument_that_is_no_array_is_refused_by_name(keys):
    table = tensorhash.HashSet(4, "int64", ())
    with pytest.raises((TypeError, ValueError), match="keys"):
        table.insert(keys)
    assert table.size() == 0


@pytest.mark.parametrize("width", [1, 3])
def test_rule_05_every_non_zero_byte_of_a_bool_array_is_true(width):
    # Masks from C libraries hold 255; NumPy prints and compares them as True.
    column = np.array([0, 1, 2, 255], dtype=np.uint8).view(bool)
    keys = np.repeat(column[:, None], width, axis=1)
    table = tensorhash.HashMap(0, "bool", (width,), "bool", ())
    same(table.insert(keys, column)[0], np.int32([0, 1, 1, 1]))
    table.insert_or_assign(keys, column)
    same(table.get([[True] * width]), np.array([True]))


@pytest.mark.parametrize("rank", [8, 31, 63, 64, 100])
def test_rule_05_an_element_of_very_many_dimensions_is_printed_correctly_or_refused(rank):
    try:
        table = tensorhash.HashSet(2, "int8", (1,) * rank)
    except ValueError as error:
        assert "key_element_shape" in str(error)
        assert rank >= 32
    else:
        assert table.key_tensor().shape == (2, *(1,) * rank)
