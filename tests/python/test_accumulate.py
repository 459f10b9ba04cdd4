"""accumulate: sum, prod, min, max, first, last, any, all, count, for one column and for several, for every dtype."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import same, same_pair

import tensorhash

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
REDUCES = ("sum", "min", "max", "first", "last", "prod")


def join(reduce, stored, row):
    """Reduces one row after the other, in the dtype of the column."""
    if reduce == "first":
        return stored
    if reduce == "last":
        return row
    if stored.dtype == bool:
        return stored & row if reduce in ("min", "prod") else stored | row
    with np.errstate(over="ignore", invalid="ignore"):
        if reduce == "sum" and stored.dtype == np.float16:
            return (stored.astype(np.float32) + row.astype(np.float32)).astype(np.float16)
        if reduce == "prod" and stored.dtype == np.float16:
            return (stored.astype(np.float32) * row.astype(np.float32)).astype(np.float16)
        return {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[reduce](
            stored, row
        )


def expected(keys, values, reduce, start=None):
    stored = dict(start or {})
    for key, value in zip(keys.tolist(), values, strict=True):
        stored[key] = join(reduce, stored[key], value) if key in stored else value
    return stored


def random_values(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return rng.normal(0, 100, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("reduce", REDUCES)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_every_reduce_of_every_dtype_joins_rows_in_order(reduce, dtype, shape):
    keys = np.random.default_rng(1).integers(0, 40, 2000)
    values = random_values(dtype, (2000, *shape), 2)
    table = tensorhash.HashMap(0, "int64", (), dtype, shape)
    table.accumulate(keys[:900], values[:900], reduce=reduce)
    table.accumulate(keys[900:], values[900:], reduce=reduce)
    stored = expected(keys, values, reduce)
    listed, got = table.items()
    same(got, np.array([stored[key] for key in listed.tolist()], dtype=dtype))
    table.validate()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1)), max_size=40),
    st.sampled_from(REDUCES),
)
def test_integers_wrap_and_joins_agree_with_numpy(rows, reduce):
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    values = np.array([value for _, value in rows], dtype=np.int64)
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    table.accumulate(keys, values, reduce)
    stored = expected(keys, values, reduce)
    listed, got = table.items()
    assert listed.tolist() == list(dict.fromkeys(keys.tolist()))
    assert got.tolist() == [int(stored[key]) for key in listed.tolist()]


def test_sum_is_the_default_and_returns_what_insert_returns():
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    answer = table.accumulate([7, 8, 7], [1, 2, 3])
    same_pair(answer, (np.int32([0, 1, 0]), np.array([True, True, False])))
    same(table.get([7, 8]), np.array([4, 2]))
    answer = table.accumulate(keys=[8, 9], values=[10, 20], reduce="sum")
    same_pair(answer, (np.int32([1, 2]), np.array([False, True])))
    same(table.get([7, 8, 9]), np.array([4, 12, 20]))


def test_each_column_may_have_its_own_reduce():
    table = tensorhash.HashMap(
        0, "int64", (), value_dtypes=["int64"] * 6, value_element_shapes=[()] * 6
    )
    for values in ([5], [2], [9], [4]):
        table.accumulate([1], [values] * 6, reduce=list(REDUCES))
    assert [int(column[0]) for column in table.get([1])] == [20, 2, 9, 5, 4, 360]
    table.accumulate([1], [[1]] * 6, reduce=("last",))
    assert [int(column[0]) for column in table.get([1])] == [1, 1, 1, 1, 1, 1]


def test_one_reduce_goes_for_all_columns():
    table = tensorhash.HashMap(
        0, "int64", (), value_dtypes=["int64", "float32"], value_element_shapes=[(), (2,)]
    )
    table.accumulate([1, 1], ([3, 4], [[1, 2], [5, 0]]), reduce="max")
    whole, real = table.get([1])
    same(whole, np.array([4]))
    same(real, np.float32([[5, 2]]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduce", ["min", "max", "sum"])
@pytest.mark.parametrize("rows", [[1, np.nan, 2], [np.nan, 1, 2], [1, 2, np.nan]])
def test_nan_propagates(dtype, reduce, rows):
    table = tensorhash.HashMap(0, "int64", (), dtype, ())
    table.accumulate([1, 1, 1], np.array(rows, dtype=dtype), reduce=reduce)
    assert np.isnan(table.get([1])).all()


def test_a_sum_of_bools_is_or():
    table = tensorhash.HashMap(0, "int64", (), "bool", ())
    table.accumulate([1, 1, 2, 2], np.array([True, True, False, False]))
    same(table.get([1, 2]), np.array([True, False]))


def test_half_sums_round_after_each_row():
    table = tensorhash.HashMap(0, "int64", (), "float16", ())
    table.accumulate(np.zeros(3000, dtype=np.int64), np.ones(3000, dtype=np.float16))
    same(table.get([0]), np.float16([2048]))  # 2048 + 1 rounds back to 2048


def test_bfloat16_sums_round_after_each_row():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    table = tensorhash.HashMap(0, "int64", (), "bfloat16", ())
    values = (np.arange(1000) / 7).astype(bfloat16)
    table.accumulate(np.zeros(1000, dtype=np.int64), values)
    total = values[0]
    for value in values[1:]:
        total = (np.float32(total) + np.float32(value)).astype(bfloat16)
    assert table.get([0])[0] == total
    assert table.get([0]).dtype == bfloat16


@pytest.mark.parametrize("reduce", REDUCES)
def test_big_batches_agree_with_numpy(reduce):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 1000, 150_000)
    values = rng.integers(-(2**62), 2**62, 150_000) | 1  # odd: products stay odd
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    table.accumulate(keys, values, reduce=reduce)
    ufunc = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}.get(reduce)
    stored = np.zeros(1000, dtype=np.int64)
    if ufunc is None:
        order = slice(None) if reduce == "last" else slice(None, None, -1)
        stored[keys[order]] = values[order]
    else:
        stored[:] = {"sum": 0, "prod": 1, "min": 2**63 - 1, "max": -(2**63)}[reduce]
        ufunc.at(stored, keys, values)
    same(table.get(np.arange(1000)), stored)


def test_keys_counted_by_accumulate_agree_with_unique():
    keys = np.random.default_rng(4).integers(0, 9, (5000, 2)).astype(np.int32)
    table = tensorhash.HashMap(0, "int32", (2,), "int64", ())
    table.accumulate(keys, np.ones(5000, dtype=np.int64))
    rows, counts = tensorhash.unique(keys, return_counts=True)
    same(table.keys(), rows)
    same(table.items()[1], counts)


@pytest.mark.parametrize("make", [tensorhash.HashMap, tensorhash.ShardedHashMap])
def test_any_all_and_count(make):
    keys = np.array([5, 6, 5, 5, 7])
    bits = np.array([0, 0, 1, 0, 1], bool)
    options = {} if make is tensorhash.HashMap else {"devices": ["cpu:0", "cpu:1"]}
    table = make(0, "int64", (), ["bool", "bool", "int32"], [(), (), ()], **options)
    for _ in range(2):
        table.accumulate(keys, [bits, bits, np.full(5, 99, np.int32)], ["any", "all", "count"])
    got = table.get(np.array([5, 6, 7]))
    same(got[0], np.array([True, False, True]))
    same(got[1], np.array([False, False, True]))
    same(got[2], np.array([6, 2, 2], np.int32))


def test_any_all_and_count_need_their_dtypes():
    table = tensorhash.HashMap(0, "int64", (), "float32", ())
    for word, expected in (("any", "bool"), ("all", "bool"), ("count", "integer")):
        with pytest.raises(TypeError, match=f"{word} expects an? {expected} column, got float32"):
            table.accumulate([1], np.float32([1]), word)
    assert len(table) == 0


def test_a_bounded_table_counts():
    table = tensorhash.BoundedHashMap(4, "int64", (), "uint8", ())
    table.accumulate(np.array([1, 2, 1]), np.zeros(3, np.uint8), "count")
    assert table.get(np.array([1, 2])).tolist() == [2, 1]
