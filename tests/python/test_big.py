"""T45: more than 2^31 bytes of values in one column; needs some 3 GB, else it is skipped."""

import numpy as np
import pytest

import tensorhash

NEEDED = 4 << 30
ROW = 2**27 + 64
ROWS = 17  # the last one begins beyond 2^31 bytes


def available_bytes():
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


@pytest.mark.skipif(available_bytes() < NEEDED, reason="needs 4 GB of free memory")
def test_t45_rule_10_values_beyond_2_to_the_31_bytes_are_stored_and_read():
    table = tensorhash.HashMap(ROWS, "int64", (), "uint8", (ROW,))
    assert table.memory_usage()["values"] > 2**31
    values = table.value_tensor()
    assert values.nbytes > 2**31
    last = ROWS - 1
    table.activate(np.arange(last))
    values[last, -1] = 9  # not live yet: activate must clean it
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
