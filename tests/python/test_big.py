"""Tests that need gigabytes, in `make test-release` only: more than 2^31 bytes of values in one
column, and a pair table with more than 2^31 elements."""

import numpy as np
import pytest
from in_full import only_in_full

import tensorhash
import tensorhash.coords as thc

pytestmark = pytest.mark.alone

NEEDED = 4 << 30
ROW = 2**27 + 64
ROWS = 17  # the last one begins beyond 2^31 bytes


def available_bytes():
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


@only_in_full
@pytest.mark.skipif(available_bytes() < NEEDED, reason="needs 4 GB of free memory")
def test_rule_10_values_beyond_2_to_the_31_bytes_are_stored_and_read():
    table = tensorhash.HashMap(ROWS, "int64", (), "uint8", (ROW,))
    assert table.memory_usage()["values"] > 2**31
    values = table.value_tensor()
    assert values.nbytes > 2**31
    last = ROWS - 1
    table.activate(np.arange(last))
    values[last, -1] = 9  # not live yet: activate must zero it
    assert table.activate(np.array([99]))[0].tolist() == [last]
    assert values[last, -1] == 0
    table.erase(np.array([99]))

    row = np.full((1, ROW), 3, dtype=np.uint8)
    row[0, [0, -1]] = 5, 7
    assert table.insert(np.array([100]), row)[0].tolist() == [last]
    assert np.array_equal(values[last], row[0])
    assert np.array_equal(table.get(np.array([100])), row)
    assert not values[last - 1].any()
    assert not values[0].any()
    assert table.capacity() == ROWS


@only_in_full
@pytest.mark.skipif(available_bytes() < 10 << 30, reason="needs 10 GB of free memory")
def test_a_pair_table_may_have_more_than_2_to_the_31_elements():
    rows, size = 525_000, (16, 16, 16)
    back = np.random.default_rng(1).integers(0, 16, (rows, 3))
    outs = np.concatenate([np.zeros((rows, 1)), -back], axis=1).astype(np.int32)
    made = thc.generate_kernel_map(np.zeros((1, 4), np.int32), outs, 1, size)
    table = made.pair_table()
    assert table.shape == (4096, rows) and table.size > 2**31
    group = np.ravel_multi_index(tuple(back.T), size)
    assert not table[group, np.arange(rows)].any()
    for k in (0, 2048, 4095):
        assert np.array_equal(np.flatnonzero(table[k] + 1), np.flatnonzero(group == k))
