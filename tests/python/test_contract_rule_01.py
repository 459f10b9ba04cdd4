"""Rule 1: a batch gives the same result as its rows one by one, on any number of threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, check, first_occurrence, same, same_pair

import tensorhash

JOINS = {
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "first": lambda stored, row: stored,
    "last": lambda stored, row: row,
}

# Few distinct keys, so that keys repeat within batches and in the table.
small_keys = st.lists(st.integers(-6, 6), max_size=24)
batches = st.tuples(
    st.sampled_from(["insert", "insert_or_assign", "activate", "erase", "find", *JOINS]),
    small_keys,
)
others = st.tuples(st.sampled_from(["clear", "compact", "reserve", "clone"]), st.just([]))


def apply(table, oracle, name, keys, values):
    if name in ("insert", "insert_or_assign"):
        same_pair(getattr(table, name)(keys, values), getattr(oracle, name)(keys, values))
    elif name in JOINS:
        expected = oracle.accumulate(keys, values, JOINS[name])
        same_pair(table.accumulate(keys, values, reduce=name), expected)
    elif name == "activate":
        same_pair(table.activate(keys), oracle.activate(keys, [0]))
    elif name == "find":
        same_pair(table.find(keys), oracle.find(keys))
    elif name == "erase":
        same(table.erase(keys), oracle.erase(keys))
    elif name == "compact":
        same(table.compact(), oracle.compact(table.capacity()))
    elif name == "clear":
        table.clear()
        oracle.clear()
    elif name == "reserve":
        table.reserve(table.capacity() + 3)
    else:
        table = table.clone()
    return table


@pytest.mark.parametrize("dtype, width", [("int64", 1), ("int32", 3), ("uint8", 1), ("float32", 2)])
@given(steps=st.lists(st.one_of(batches, batches, batches, others), max_size=30))
def test_rule_01_any_sequence_of_calls_agrees_with_a_dict(dtype, width, steps):
    table = tensorhash.HashMap(0, dtype, (width,), "int64", (1,))
    oracle = Oracle()
    for number, (name, numbers) in enumerate(steps):
        column = np.array(numbers, dtype=np.int64) + (6 if dtype == "uint8" else 0)
        keys = np.repeat(column.astype(dtype)[:, None], width, axis=1)
        values = (1000 * number + np.arange(len(numbers)))[:, None]
        table = apply(table, oracle, name, keys, values)
    check(table, oracle)


@pytest.mark.parametrize("threads", [1, 2, 8, 64])
@pytest.mark.parametrize("dtype, width", [("int64", 1), ("int32", 3), ("int16", 1)])
def test_rule_01_of_equal_keys_the_first_row_wins_in_big_batches(threads, dtype, width):
    tensorhash.set_num_threads(threads)
    keys = np.random.default_rng(1).integers(-5000, 5000, (200_000, width)).astype(dtype)
    if width == 3:
        keys[:, 1:] = keys[:, :1] // [3, 7]
    table = tensorhash.HashMap(10, dtype, (width,), "int64", ())
    indices, mask = table.insert(keys, np.arange(len(keys)))

    first, inverse, _ = first_occurrence(keys)
    same(indices, inverse.astype(np.int32))
    same(np.flatnonzero(mask), first)
    same(table.get(keys), first[inverse])
    same(table.keys(), keys[first])
    table.validate()


def test_rule_01_the_last_of_equal_rows_wins_in_insert_or_assign():
    keys = np.random.default_rng(2).integers(0, 3000, 100_000)
    table = tensorhash.HashMap(10, "int64", (), "int64", ())
    table.insert_or_assign(keys, np.arange(len(keys)))
    expected = {key: row for row, key in enumerate(keys.tolist())}
    stored = dict(zip(*(array.tolist() for array in table.items()), strict=True))
    assert stored == expected


def test_rule_01_freed_indices_are_a_stack_pushed_and_popped_in_row_order():
    table = tensorhash.HashSet(10, "int64", (1,))
    table.insert([[0], [1], [2], [3], [4], [5]])
    table.erase([[4], [1], [77], [1], [3]])
    same(table.insert([[10], [11], [12], [13], [14]])[0], np.int32([3, 1, 4, 6, 7]))


def test_rule_01_only_rows_that_insert_pop_a_freed_index():
    table = tensorhash.HashSet(10, "int64", (1,))
    table.insert([[0], [1], [2], [3]])
    table.erase([[0], [2]])
    indices, mask = table.insert([[1], [50], [50], [3], [51], [1], [52]])
    same(indices, np.int32([1, 2, 2, 3, 0, 1, 4]))
    same(mask, np.array([False, True, False, False, True, False, True]))


def test_rule_01_a_big_erase_pushes_in_row_order():
    rng = np.random.default_rng(3)
    table = tensorhash.HashSet(10, "int64", ())
    keys = np.arange(60_000)
    table.insert(keys)
    gone = rng.permutation(keys)[:40_000]
    erased = table.erase(np.concatenate([gone, gone, keys[:5] - 100]))
    same(np.flatnonzero(erased), np.arange(40_000))
    indices, _ = table.insert(np.arange(100_000, 150_000))
    expected = np.concatenate([gone[::-1], np.arange(60_000, 70_000)])
    same(indices, expected.astype(np.int32))
    table.validate()


@pytest.mark.parametrize("threads", [2, 8, 64])
def test_rule_01_results_are_bit_identical_on_any_number_of_threads(threads):
    def history(count):
        tensorhash.set_num_threads(count)
        rng = np.random.default_rng(4)
        table = tensorhash.HashMap(0, "int32", (3,), "float32", (2,))
        seen = []
        for _ in range(12):
            keys = rng.integers(-20, 20, (9000, 3)).astype(np.int32)
            values = rng.standard_normal((9000, 2)).astype(np.float32)
            seen += table.insert(keys, values)
            seen.append(table.erase(rng.integers(-20, 20, (4000, 3)).astype(np.int32)))
            seen += table.accumulate(keys[::-1], values)
            seen += table.find(rng.integers(-25, 25, (5000, 3)).astype(np.int32))
        seen += [table.compact(), table.active_buf_indices(), *table.items()]
        return [array.tobytes() for array in seen]

    assert history(threads) == history(1)


def test_rule_01_float_sums_add_in_row_order():
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 50, 50_000)
    values = (rng.standard_normal(50_000) * 10.0 ** rng.integers(-8, 8, 50_000)).astype(np.float32)
    table = tensorhash.HashMap(0, "int64", (), "float32", ())
    table.accumulate(keys, values)
    expected = {}
    for key, value in zip(keys.tolist(), values, strict=True):
        expected[key] = expected[key] + value if key in expected else value
    stored_keys, sums = table.items()
    same(sums, np.array([expected[key] for key in stored_keys.tolist()], dtype=np.float32))
