"""group_by: every aggregate against a loop over the rows, on several threads; streams; messages.

Over 400 lines: all tests share the oracle of the aggregates.
"""

import copy
import math
import re

import numpy as np
import pytest
from oracle import refused, same

import tensorhash as th
from tensorhash.data import GroupBy, group_by

AGGREGATES = (
    *("sum", "mean", "min", "max", "count", "prod", "any", "all", "var", "std"),
    *("first", "last", "argmin", "argmax", "nunique"),
)
VALUE_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)


def canonical(value):
    """Equal keys have equal names: -0.0 is 0.0, and all NaNs are one."""
    parts = np.atleast_1d(value).tolist()
    return tuple("nan" if part != part else part + 0 for part in parts)


def is_better(value, best, greatest):
    if best != best:
        return False
    return value != value or (value > best if greatest else value < best)


def extreme(values, greatest):
    """(value, position) of NumPy's minimum or maximum: a NaN wins, then the first."""
    at = 0
    for i in range(1, len(values)):
        if is_better(values[i], values[at], greatest):
            at = i
    return values[at], at


def welford(values):
    mean = squares = 0.0
    for count, value in enumerate(map(float, values), 1):
        deviation = value - mean
        mean += deviation / count
        squares += deviation * (value - mean)
    return squares / (len(values) - 1) if len(values) > 1 else math.nan


def fold(values, start, join):
    total = start
    for value in values:
        total = join(total, value)
    return total


def aggregate(name, values, rows):
    """One number by a loop over a group's values, in the dtype that the docs promise."""
    kind, dtype = values.dtype.kind, values.dtype
    whole = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(kind)
    exact = values.astype(np.float64 if whole is None else whole)
    with np.errstate(all="ignore"):
        if name == "sum":
            zero = np.float64(-0.0) if whole is None else whole(0)
            return fold(exact, zero, lambda a, b: a + b).astype(whole or dtype)
        if name == "prod":
            one = np.float64(1) if whole is None else whole(1)
            return fold(exact, one, lambda a, b: a * b).astype(whole or dtype)
        if name == "mean":
            floats = values.astype(np.float64)
            return np.float64(fold(floats, np.float64(-0.0), lambda a, b: a + b) / len(values))
        if name in ("var", "std"):
            found = welford(values.astype(np.float64))
            return np.float64(
                found if name == "var" else math.sqrt(found) if found == found else found
            )
    if name in ("min", "max"):
        return dtype.type(extreme(values, name == "max")[0])
    if name in ("argmin", "argmax"):
        return np.int64(rows[extreme(values, name == "argmax")[1]])
    if name in ("first", "last"):
        return values[0 if name == "first" else -1]
    if name in ("any", "all"):
        return np.bool_(getattr(values.astype(bool), name)())
    if name == "nunique":
        return np.int64(len({canonical(value) for value in values}))
    return np.int64(len(values))


def oracle(keys, columns):
    """{name: array} like agg(), from {name: (values, aggregate)}."""
    groups = {}
    for row, key in enumerate(keys):
        groups.setdefault(canonical(key), []).append(row)
    rows = [np.array(found) for found in groups.values()]
    out = {"key": keys[[found[0] for found in rows]] if rows else keys[:0]}
    for name, (values, what) in columns.items():
        out[name] = np.array([aggregate(what, values[found], found) for found in rows])
    return out


def check(keys, columns, got=None):
    expected = oracle(keys, columns)
    got = group_by(keys).agg(**columns) if got is None else got
    assert list(got) == list(expected)
    for name, array in expected.items():
        same(got[name], array)


def some_values(dtype, count, rng):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind == "f":
        values = rng.normal(0, 3, count).astype(dtype)
        values[rng.integers(0, count, count // 20)] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
        return values
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_every_aggregate_of_every_dtype_agrees_with_a_loop(dtype):
    rng = np.random.default_rng(1)
    keys = rng.integers(-5, 5, 200)
    values = some_values(dtype, 200, rng)
    names = [one for one in AGGREGATES if (dtype, one) != ("float16", "nunique")]
    check(keys, {f"the_{name}": (values, name) for name in names})


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("groups", [1, 300, 6_000, 60_000])
def test_large_batches_have_the_bits_of_a_serial_loop_on_any_number_of_threads(threads, groups):
    th.set_num_threads(threads)
    rng = np.random.default_rng(groups)
    count = 150_000
    keys = rng.integers(0, groups, count) * np.int64(0x1E3779B97F4A7C15)
    values = rng.normal(0, 1, count) * 10.0 ** rng.integers(-12, 12, count)
    small = rng.integers(-100, 100, count).astype(np.int8)
    got = group_by(keys).agg(
        total=(values, "sum"),
        mean=(values, "mean"),
        low=(values, "min"),
        rows="count",
        where=(values, "argmax"),
        last=(small, "last"),
        wide=(small, "sum"),
    )
    first, inverse, counts = first_occurrence(keys)
    same(got["key"], keys[first])
    same(got["rows"], counts)
    sums = np.full(len(first), -0.0)
    np.add.at(sums, inverse, values)  # adds in row order
    same(got["total"], sums)
    same(got["mean"], sums / counts)
    wide = np.zeros(len(first), np.int64)
    np.add.at(wide, inverse, small)
    same(got["wide"], wide)
    last = np.empty(len(first), np.int8)
    last[inverse] = small
    same(got["last"], last)
    low = np.full(len(first), np.inf)
    np.minimum.at(low, inverse, values)
    same(got["low"], low)
    same(values[got["where"]] >= values[first], np.ones(len(first), bool))
    same(inverse[got["where"]], np.arange(len(first)))


def first_occurrence(keys):
    _, first, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse], counts[order]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "uint16", "uint64", "float32", "float64"]
)
def test_keys_of_every_kind(dtype):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2 if dtype == "bool" else 9, 300).astype(dtype)
    check(keys, {"total": (rng.normal(0, 1, 300), "sum")})


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_wide_keys(width):
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 3, (70_000, width))
    values = rng.normal(0, 1, 70_000)
    first, inverse, _ = first_rows_of_rows(keys)
    sums = np.full(len(first), -0.0)
    np.add.at(sums, inverse, values)
    got = group_by(keys).agg(sum=values)
    same(got["key"], keys[first])
    same(got["sum"], sums)


def first_rows_of_rows(keys):
    _, ids = np.unique(keys, axis=0, return_inverse=True)
    return first_occurrence(ids.reshape(-1))


def test_float_keys_compare_as_in_tables_and_keep_their_first_form():
    keys = np.array([-0.0, np.nan, 0.0, -np.nan, 1.0])
    got = group_by(keys).agg(rows="count")
    same(got["key"], keys[[0, 1, 4]])
    same(got["rows"], np.array([2, 2, 1]))


def test_the_key_of_every_mixed_word_is_ordinary():
    # Whatever the seed, some key mixes to 0. Many dense keys come near every structure.
    keys = np.arange(-70_000, 70_000)
    got = group_by(np.concatenate([keys, keys])).agg(rows="count")
    same(got["key"], keys)
    same(got["rows"], np.full(len(keys), 2))


def test_negative_zero_nan_infinity_and_overflow():
    keys = np.array([1, 1, 2, 2, 3])
    values = np.array([-0.0, -0.0, np.inf, -np.inf, np.nan])
    got = group_by(keys).agg(sum=values, min=values, max=values, any=values, all=values)
    assert math.copysign(1, got["sum"][0]) == -1
    assert np.isnan(got["sum"][1:]).all()
    same(got["any"], np.array([False, True, True]))
    large = np.array([2**63 - 1, 1, 5, 5, 5])
    assert group_by(keys).agg(sum=large)["sum"].tolist() == [-(2**63), 10, 5]
    unsigned = large.astype(np.uint64) * 2
    assert group_by(keys).agg(sum=unsigned)["sum"].tolist() == [0, 20, 10]
    assert group_by(keys).agg(mean=large)["mean"][0] == 2.0**62


def test_values_with_several_numbers_per_row_are_aggregated_each():
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 50, 1000)
    values = rng.normal(0, 1, (1000, 2, 3)).astype(np.float32)
    got = group_by(keys).agg(sum=values, argmin=values, nunique=values)
    for i in range(2):
        for j in range(3):
            part = oracle(
                keys,
                {name: (values[:, i, j], name) for name in ("sum", "argmin", "nunique")},
            )
            for name in ("sum", "argmin", "nunique"):
                same(got[name][:, i, j], part[name])


def test_many_columns_and_many_groups():
    rng = np.random.default_rng(6)
    keys = rng.integers(0, 30_000, 80_000) * 977
    values = rng.normal(0, 1, (80_000, 3))
    several = group_by(keys).agg(
        **{f"c{i}": (values[:, i], "sum") for i in range(3)}, all=(values, "sum")
    )
    for i in range(3):
        same(several[f"c{i}"], several["all"][:, i])
    first, inverse, _ = first_occurrence(keys)
    sums = np.full(len(first), -0.0)
    np.add.at(sums, inverse, values[:, 1])
    same(several["c1"], sums)


def test_strided_foreign_and_unaligned_arrays():
    rng = np.random.default_rng(7)
    keys, values = rng.integers(0, 9, 400), rng.normal(0, 1, 400)
    expected = group_by(keys).agg(sum=values)["sum"]
    wide = np.zeros((400, 3))
    wide[:, 1] = values
    unaligned = np.zeros(400 * 8 + 1, np.uint8)[1:].view(np.float64)
    unaligned[:] = values
    for other in (wide[:, 1], values[::-1][::-1], values.astype(">f8"), unaligned):
        same(group_by(keys).agg(sum=other)["sum"], expected)
    doubled = np.repeat(keys, 2)[::2]
    same(group_by(doubled).agg(sum=values)["sum"], expected)


@pytest.mark.parametrize("name", AGGREGATES)
def test_empty_input_gives_empty_columns_of_the_right_dtype(name):
    keys, values = np.zeros(0, np.int32), np.zeros(0, np.float32)
    full = group_by(np.zeros(1, np.int32)).agg(it=(np.ones(1, np.float32), name))["it"]
    got = group_by(keys).agg(it=(values, name))
    same(got["key"], keys)
    assert got["it"].shape == (0,)
    assert got["it"].dtype == full.dtype


def test_agg_without_columns_gives_the_keys():
    same(group_by(np.array([3, 1, 3])).agg()["key"], np.array([3, 1]))


def test_lists_and_frameworks():
    got = group_by([7, 3, 7]).agg(sum=[1, 2, 4], rows="count", mean=[1, 2, 4])
    assert {name: column.tolist() for name, column in got.items()} == {
        "key": [7, 3],
        "sum": [5, 2],
        "rows": [2, 1],
        "mean": [2.5, 2.0],
    }
    torch = pytest.importorskip("torch")
    got = group_by(torch.tensor([7, 3, 7])).agg(sum=torch.tensor([1.0, 2.0, 4.0]))
    assert isinstance(got["sum"], torch.Tensor)
    assert got["sum"].tolist() == [5.0, 2.0]


def test_columns_of_a_tuple_or_frame_keep_their_dtypes():
    users, score = np.array([2**60 + 1, 2**60, 2**60 + 1]), np.array([0.5, 0.5, 0.5])
    got = group_by((users, score)).agg(rows="count")
    assert list(got) == ["key_0", "key_1", "rows"]
    same(got["key_0"], users[:2])
    same(got["key_1"], score[:2])
    same(got["rows"], np.array([2, 1]))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": users, "score": score})
    got = group_by(frame).agg(total=(frame["score"], "sum"))
    assert list(got) == ["user", "score", "total"]
    expected = frame.groupby(["user", "score"], sort=False).score.sum()
    same(got["total"], expected.to_numpy())
    same(got["user"], users[:2])
    twice = frame.set_axis(["user", "user"], axis=1)
    refused(lambda: group_by(twice), "keys: expected columns of different names, got 'user' twice")
    one = group_by(frame[["user"]]).agg(rows="count")
    assert list(one) == ["user", "rows"]
    same(one["user"], users[:2])


def test_pandas_agrees():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(8)
    keys, values = rng.integers(0, 300, 5000), rng.integers(-9, 9, 5000)
    frame = pandas.DataFrame({"k": keys, "v": values})
    grouped = frame.groupby("k", sort=False).v
    names = ["sum", "mean", "min", "max", "count", "prod", "any", "all", "first", "last", "nunique"]
    got = group_by(keys).agg(**{name: (values, name) for name in names})
    for name in names:
        np.testing.assert_array_equal(got[name], getattr(grouped, name)().to_numpy(), name)
    got = group_by(keys).agg(var=values, std=values)
    np.testing.assert_allclose(got["var"], grouped.var().to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(got["std"], grouped.std().to_numpy(), rtol=1e-12)


def test_a_stream_has_the_bits_of_one_call():
    rng = np.random.default_rng(9)
    keys = rng.integers(0, 4000, 90_000)
    values = rng.normal(0, 1, 90_000) * 10.0 ** rng.integers(-9, 9, 90_000)
    columns = {f"the_{name}": (values, name) for name in AGGREGATES}
    whole = group_by(keys).agg(**columns)
    stream = GroupBy(**{f"the_{name}": ("v", name) for name in AGGREGATES})
    for begin in range(0, 90_000, 17_001):
        stream.update(keys[begin : begin + 17_001], v=values[begin : begin + 17_001])
    got = stream.result()
    assert list(got) == list(whole)
    for name, column in whole.items():
        same(got[name], column)
    assert len(stream) == len(whole["key"])
    same(stream.result()["the_sum"], whole["the_sum"])


def test_a_merged_stream_is_as_if_its_rows_came_later():
    rng = np.random.default_rng(10)
    keys, values = rng.integers(0, 90, 2000), rng.integers(-50, 50, 2000)
    streams = [GroupBy(**{f"the_{name}": ("v", name) for name in AGGREGATES}) for _ in range(3)]
    for stream, part in zip(streams[:2], (slice(0, 700), slice(700, None)), strict=True):
        stream.update(keys[part], v=values[part])
    whole = group_by(keys).agg(**{f"the_{name}": (values, name) for name in AGGREGATES})
    streams[0].merge(streams[1])
    got = streams[0].result()
    for name, column in whole.items():
        if name in ("the_var", "the_std"):
            np.testing.assert_allclose(got[name], column, rtol=1e-12)
        else:
            same(got[name], column)
    streams[2].merge(streams[1])  # into an empty one
    for name, column in streams[1].result().items():
        same(streams[2].result()[name], column)


def test_streams_of_columns_with_different_dtypes():
    a, b = GroupBy(rows="count"), GroupBy(rows="count")
    a.update((np.array([1, 2]), np.array([0.5, 0.5])))
    a.update((np.array([2, 1]), np.array([0.5, 1.5])))
    b.update((np.array([3, 1]), np.array([0.5, 1.5])))
    a.merge(b)
    got = a.result()
    same(got["key_0"], np.array([1, 2, 1, 3]))
    same(got["key_1"], np.array([0.5, 0.5, 1.5, 0.5]))
    same(got["rows"], np.array([1, 2, 2, 1]))


def test_a_refused_batch_changes_nothing():
    stream = GroupBy(sum="v")
    refused(stream.result, "at least one batch")
    refused(lambda: stream.update([1, 2], v=[1]), "v", "2 rows")
    stream.update(np.array([1, 2]), v=np.array([1.0, 2.0]))
    before = {name: column.copy() for name, column in stream.result().items()}
    refused(lambda: stream.update(np.array([1, 9]), v=np.array([1.0])), "v", "2 rows", "(1,)")
    refused(lambda: stream.update(np.array([1, 9]), v=np.array([1, 2])), "float64", "int64")
    refused(lambda: stream.update(np.array([1.0, 9.0]), v=np.array([1.0, 2.0])), "keys", "int64")
    refused(lambda: stream.update(np.array([1])), "v", "none")
    refused(lambda: stream.merge(stream), "other")
    refused(lambda: stream.merge(GroupBy(max="v")), "same columns")
    refused(lambda: stream.merge(5), "other", "int")
    for name, column in stream.result().items():
        same(column, before[name])


def test_bad_arguments_are_named():
    grouping = group_by(np.array([1, 2]))
    assert "2 rows" in repr(grouping)
    refused(lambda: grouping.agg(total=([1, 2], "total")), "total", "sum, mean", "'total'")
    refused(lambda: grouping.agg(total=[1, 2]), "total", "pair", "list")
    refused(lambda: grouping.agg(total=("price", "sum")), "total", "frame['price']")
    refused(lambda: grouping.agg(total=(None, "sum")), "total", "pair")
    refused(lambda: grouping.agg(sum=None), "sum", "pair", "NoneType")
    refused(lambda: grouping.agg(total=([1, 2, 3], "sum")), "total", "2 rows", "(3,)")
    refused(lambda: grouping.agg(key=([1, 2], "sum")), "key", "key columns")
    refused(lambda: grouping.agg(total=(np.zeros(2, complex), "sum")), "total", "complex128")
    refused(lambda: grouping.agg(total=(np.zeros((2, 0)), "sum")), "total")
    refused(lambda: grouping.agg(n=(np.zeros(2, np.float16), "nunique")), "nunique", "float16")
    refused(lambda: group_by(np.float64(5)), "keys")
    refused(lambda: group_by(np.zeros(3, complex)).agg(), "keys", "complex")
    refused(lambda: group_by((np.zeros(3), np.zeros(2))), "keys[1]", "3 rows", "2")
    refused(lambda: GroupBy(total=(np.zeros(3), "sum")), "total", "name of the values")


def test_a_number_is_not_a_column():
    for given in (True, 1, np.int64(1)):
        with pytest.raises(TypeError, match='count: .* got .*; count="count" counts rows'):
            group_by([1, 2]).agg(count=given)


def test_methods_of_data_frames_are_pointed_to_agg():
    groups = group_by([1, 2])
    for name, way in (("sum", "sum=values"), ("size", 'rows="count"'), ("count", 'rows="count"')):
        with pytest.raises(AttributeError, match=re.escape(f"; use agg({way})")):
            getattr(groups, name)
    assert not hasattr(groups, "transform") and copy.copy(groups).agg(rows="count")
