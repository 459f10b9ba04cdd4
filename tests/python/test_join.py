"""join, JoinIndex, index_of, isin and factorize against loops over the rows."""

import doctest

import numpy as np
import pytest
from oracle import canonical, refused, same

import tensorhash as th
from tensorhash.data import JoinIndex, factorize, index_of, isin, join

HOW = ("inner", "left", "full", "semi", "anti")


def oracle(left, right, how):
    """(left rows, right rows) by a loop."""
    places = {}
    for row, key in enumerate(right):
        places.setdefault(canonical(key), []).append(row)
    pairs, met = [], set()
    for row, key in enumerate(left):
        found = places.get(canonical(key), [])
        met.update(found)
        if how == "semi":
            pairs += [(row, found[0])] if found else []
        elif how == "anti":
            pairs += [] if found else [(row, -1)]
        elif how == "inner":
            pairs += [(row, other) for other in found]
        else:
            pairs += [(row, other) for other in found or [-1]]
    if how == "full":
        pairs += [(-1, row) for row in range(len(right)) if row not in met]
    return np.array(pairs, np.int64).reshape(-1, 2).T


def check(left, right):
    for how in HOW:
        got = join(left, right, how)
        expected = oracle(left, right, how)
        same(got.left, expected[0])
        same(got.right, expected[1])


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "int64", "uint64", "float32", "float64"]
)
def test_all_joins_of_every_dtype_agree_with_a_loop(dtype):
    rng = np.random.default_rng(0)
    most = 2 if dtype == "bool" else 40
    check(rng.integers(0, most, 60).astype(dtype), rng.integers(0, most, 50).astype(dtype))


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 2)])
def test_rows_of_several_numbers(shape):
    rng = np.random.default_rng(1)
    check(rng.integers(0, 3, (60, *shape)), rng.integers(0, 3, (50, *shape)))


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("keys", [500, 20_000, None])
def test_large_joins_on_any_number_of_threads(threads, keys):
    th.set_num_threads(threads)
    rng = np.random.default_rng(2)
    left = rng.integers(0, keys or 90_000, 40_000)
    right = rng.permutation(70_000) if keys is None else rng.integers(0, keys, 70_000)
    left = left[:2000] if keys == 500 else left
    order = np.argsort(right, kind="stable")
    begin = np.searchsorted(right[order], left, "left")
    end = np.searchsorted(right[order], left, "right")
    index = JoinIndex(right)
    same(index.count(left), end - begin)
    rows = np.repeat(np.arange(len(left)), end - begin)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
    expected = order[np.repeat(begin, end - begin) + within]
    got = index.join(left)
    same(got.left, rows)
    same(got.right, expected)
    found = index.matches(left)
    same(found.offsets, np.concatenate([[0], np.cumsum(end - begin)]))
    same(found.rows, expected)
    first = np.full(len(left), -1)
    first[end > begin] = order[begin[end > begin]]
    same(index.first(left), first)
    assert len(index) == 70_000
    full = index.join(left, "full")
    same(full.right[full.left < 0], np.flatnonzero(~np.isin(right, left)))


def test_float_keys_compare_as_in_tables():
    left, right = np.array([-0.0, np.nan, 2.0]), np.array([np.nan, 0.0, -np.nan])
    got = join(left, right, "left")
    same(got.left, np.array([0, 1, 1, 2]))
    same(got.right, np.array([1, 0, 2, -1]))


@pytest.mark.parametrize("how", HOW)
def test_empty_sides(how):
    nothing, some = np.zeros(0, np.int64), np.array([4, 4, 5])
    for left, right in ((nothing, some), (some, nothing), (nothing, nothing)):
        got, expected = join(left, right, how), oracle(left, right, how)
        same(got.left, expected[0])
        same(got.right, expected[1])


def test_columns_with_different_dtypes_and_frames():
    left = (np.array([1, 2, 3]), np.array([0.5, 0.5, 9.0]))
    right = (np.array([2, 2, 1]), np.array([0.5, 0.5, 7.0]))
    got = join(left, right, "left")
    same(got.left, np.array([0, 1, 1, 2]))
    same(got.right, np.array([-1, 0, 1, -1]))
    pandas = pytest.importorskip("pandas")
    a = pandas.DataFrame({"x": left[0], "y": left[1]})
    b = pandas.DataFrame({"x": right[0], "y": right[1]})
    same(join(a, b, "left").right, got.right)
    merged = a.reset_index().merge(b.reset_index(), on=["x", "y"])
    same(join(a, b).left, merged["index_x"].to_numpy())
    same(join(a, b).right, merged["index_y"].to_numpy())


def test_strided_and_foreign_arrays():
    grid = np.arange(12).reshape(6, 2)
    same(index_of(grid[::-1, 0], grid[:, 0]), np.array([5, 4, 3, 2, 1, 0]))
    same(index_of(grid[:, 1].astype(">i8"), grid[:, 1]), np.arange(6))
    torch = pytest.importorskip("torch")
    got = join(torch.tensor([1, 2]), np.array([2]))
    assert isinstance(got.left, torch.Tensor)
    assert got.left.tolist() == [1]


def test_index_of_isin_and_factorize():
    rng = np.random.default_rng(3)
    keys, queries = rng.integers(0, 99, 300), rng.integers(0, 120, 400)
    first = index_of(keys, queries)
    hit = np.isin(queries, keys)
    same(isin(queries, keys), hit)
    same(first >= 0, hit)
    same(keys[first[hit]], queries[hit])
    every = index_of(keys, queries, all=True)
    for query, begin, end in zip(queries, every.offsets[:-1], every.offsets[1:], strict=True):
        same(every.rows[begin:end], np.flatnonzero(keys == query))
    pandas = pytest.importorskip("pandas")
    codes, uniques = factorize(keys)
    expected = pandas.factorize(keys)
    same(codes, expected[0])
    same(uniques, expected[1])
    codes, (a, b) = factorize((np.array([1, 1, 2]), np.array([0.5, 0.5, 0.5])))
    assert codes.tolist() == [0, 0, 1]
    assert (a.tolist(), b.tolist()) == ([1, 2], [0.5, 0.5])
    assert isin((np.array([1, 3]), np.array([0.5, 0.5])), (a, b)).tolist() == [True, False]


def test_the_index_keeps_its_own_keys():
    right = np.array([5, 6, 7])
    index = JoinIndex(right)
    right[:] = 0
    same(index.first(np.array([6, 0])), np.array([1, -1]))
    assert repr(index) == "JoinIndex of 3 rows, 3 distinct"


def test_the_examples_in_docstrings_are_true():
    for module in (th.data, th.data._group_by, th.data._join):
        failed, tried = doctest.testmod(module)
        assert failed == 0
        assert tried > 0


def test_bad_arguments_are_named():
    refused(lambda: join([1], [1], how="outer"), "how", '"inner"', "'outer'")
    refused(lambda: join(np.array([1.0]), np.array([1])), "left", "int64", "float64")
    refused(lambda: join(np.zeros((2, 3)), np.zeros((2, 2))), "left", "(N, 2)", "(2, 3)")
    refused(lambda: JoinIndex(np.zeros(2, complex)), "right", "complex128")
    refused(lambda: JoinIndex(5), "right")
    refused(lambda: join((np.zeros(2), np.zeros(2)), (np.zeros(2),)), "left", "1 key columns")
    refused(lambda: isin(np.array([1.0]), np.array([1])), "elements", "int64", "float64")


@pytest.mark.parametrize(("how", "way"), [("outer", 'pass "full"'), ("right", "swap the sides")])
def test_words_of_data_frames_are_refused_with_a_way_in(how, way):
    for call in (lambda: join([1], [1], how), lambda: JoinIndex([1]).join([1], how)):
        with pytest.raises(ValueError, match=f'how: expected "inner".* got {how!r}; {way}'):
            call()
