"""Memory stays flat over many tables and many cycles; memory_usage counts all buffers."""

import numpy as np
import pytest
from in_full import times

import tensorhash

RSS = """
import gc, os, sys
import numpy as np
import tensorhash

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def flat(cycle, count, warm_up, slack=6 << 20):
    for number in range(warm_up):
        cycle(number)
    before = resident()
    for number in range(count):
        cycle(number)
    grown = resident() - before
    assert grown < slack, f"{grown >> 10} KB more after {count} cycles"
"""


def test_ten_thousand_tables_leave_nothing_behind(run_program):
    source = """
keys = np.arange(300)
values = np.ones((300, 8), dtype=np.float32)

def cycle(number):
    table = tensorhash.HashMap(16, "int64", (), "float32", (8,))
    table.insert(keys + number, values)
    table.erase(keys[:100] + number)
    table.find(keys)
    table.value_tensor()[0] = 1

flat(cycle, 10_000, 1000)
"""
    run_program(RSS, source)


def test_growing_and_clearing_a_table_does_not_leak(run_program):
    source = """
keys = np.arange(60_000)

def cycle(number):
    table = tensorhash.HashSet(0, "int64", ())
    table.insert(keys[:1000])
    table.insert(keys)
    table.clear()
    table.insert(keys[::-1])
    table.reserve(100_000)
    table.compact()

flat(cycle, int(sys.argv[1]), 50, slack=24 << 20)
"""
    run_program(RSS, source, arguments=[times(1000, 300)])


def test_failing_calls_files_pickles_and_dlpack_do_not_leak(run_program, tmp_path):
    source = """
import pickle
import tensorhash.core as o3c

keys = np.arange(2000)
table = tensorhash.HashMap.from_items(keys, keys)
path = sys.argv[1]

def cycle(number):
    for bad in (keys.astype(float), keys[:, None, None].repeat(2, 1), "abc", [2**70]):
        try:
            table.insert(bad, keys)
        except (TypeError, ValueError):
            pass
    pickle.loads(pickle.dumps(table))
    table.clone()
    o3c.Tensor.from_dlpack(o3c.Tensor(keys).to_dlpack())
    o3c.Tensor(keys).to_dlpack()
    o3c.Tensor(keys).__dlpack__(max_version=(1, 0))
    memoryview(table.value_tensor())
    tensorhash.unique(keys, True, True, True)
    if number % 20 == 0:
        for suffix in (".thash", ".npz"):
            table.save(path + suffix)
            tensorhash.HashMap.load(path + suffix)

flat(cycle, int(sys.argv[2]), 300)
"""
    run_program(RSS, source, arguments=[tmp_path / "file", times(3000, 1000)])


def test_scratch_of_big_batches_is_freed_or_reused(run_program):
    source = """
keys = np.random.default_rng(0).integers(0, 1000, 500_000)
table = tensorhash.HashMap(2000, "int64", (), "int64", ())

def cycle(number):
    table.insert(keys, keys)
    table.accumulate(keys, keys)
    table.find(keys)
    table.get(keys)
    table.erase(keys)

flat(cycle, int(sys.argv[1]), 10, slack=16 << 20)
assert table.capacity() == 2000
"""
    run_program(RSS, source, arguments=[times(60, 20)])


@pytest.mark.parametrize("capacity", [0, 1, 1000, 100_000])
def test_memory_usage_covers_the_buffers(capacity):
    table = tensorhash.HashMap(
        capacity, "int32", (3,), value_dtypes=("float64", "uint8"), value_element_shapes=((2,), ())
    )
    usage = table.memory_usage()
    assert set(usage) == {"keys", "values", "index", "bookkeeping", "total"}
    assert all(isinstance(count, int) and count >= 0 for count in usage.values())
    assert usage["total"] == sum(usage.values()) - usage["total"]
    assert usage["keys"] >= table.key_tensor().nbytes
    assert usage["values"] >= sum(view.nbytes for view in table.value_tensors())
    assert usage["keys"] <= 2 * table.key_tensor().nbytes + 4096  # blocks are reused
    if capacity:
        assert usage["index"] >= 4 * capacity
        assert usage["index"] <= 64 * capacity + 4096


def test_memory_usage_grows_with_the_table_and_not_with_the_batch():
    table = tensorhash.HashSet(0, "int64", ())
    table.insert(np.zeros(1_000_000, dtype=np.int64))
    assert table.memory_usage()["total"] < 10_000
    table.insert(np.arange(100_000))
    assert table.memory_usage()["total"] > 100_000 * 8


@pytest.mark.parametrize("rows", [1_000_000, 10_000_000])
@pytest.mark.parametrize(("dtype", "width", "limit"), [("int64", 1, 40), ("int32", 3, 24)])
def test_bytes_per_entry_beyond_the_buffers_are_limited(rows, dtype, width, limit):
    """Also with all entries erased, when the free stack is longest."""
    table = tensorhash.HashSet(rows, dtype, (width,))

    def beyond():
        usage = table.memory_usage()
        return (usage["total"] - usage["keys"] - usage["values"]) / rows

    assert beyond() < limit
    if rows == 1_000_000:
        keys = np.arange(rows * width, dtype=dtype).reshape(rows, width)
        table.insert(keys)
        assert beyond() < limit
        table.erase(keys)
        assert beyond() < limit
    assert table.capacity() == rows
