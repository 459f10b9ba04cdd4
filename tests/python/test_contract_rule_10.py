"""Rule 10: sizes are 64-bit; one table holds at most 2^31-1 entries and says so."""

import numpy as np
import pytest
from oracle import snapshot

import tensorhash


@pytest.mark.parametrize("capacity", [2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 2**100])
def test_rule_10_a_capacity_beyond_the_limit_is_refused_with_the_limit(capacity):
    with pytest.raises(ValueError, match="init_capacity.*2147483647"):
        tensorhash.HashSet(capacity, "int8", ())
    table = tensorhash.HashSet(3, "int8", ())
    before = snapshot(table)
    with pytest.raises(ValueError, match="capacity.*2147483647"):
        table.reserve(capacity)
    assert snapshot(table) == before


@pytest.mark.parametrize("method", ["insert", "find", "erase", "contains", "activate"])
def test_rule_10_a_batch_of_more_than_the_limit_is_refused_before_anything_is_read(method):
    table = tensorhash.HashMap(3, "int8", (), "int8", ())
    before = snapshot(table)
    rows = np.broadcast_to(np.int8(5), (2**31,))
    with pytest.raises(ValueError, match=r"keys.*2147483647.*2147483648"):
        getattr(table, method)(*([rows, rows] if method == "insert" else [rows]))
    assert snapshot(table) == before


@pytest.mark.parametrize("shape", [(2**61,), (2**62,), (2**31, 2**31, 2**31), (2**63 - 1, 1)])
def test_rule_10_element_shapes_with_overflowing_bytes_are_refused(shape):
    for capacity in (0, 10):
        with pytest.raises((ValueError, MemoryError)):
            tensorhash.HashMap(capacity, "int64", (), "int64", shape)
        with pytest.raises((ValueError, MemoryError)):
            tensorhash.HashMap(capacity, "int64", shape, "int64", ())


def test_rule_10_a_capacity_with_overflowing_bytes_is_refused():
    with pytest.raises((ValueError, MemoryError)):
        tensorhash.HashMap(2**20, "int64", (), "float64", (2**42,))


def test_rule_10_growth_with_overflowing_bytes_is_refused(run_program):
    # In its own process: a table that took 2^64 for 0 bytes would write out of bounds.
    run_program(
        """
        import tensorhash

        for shape in (2**60, 2**61, 2**62):
            try:
                table = tensorhash.HashMap(0, "int64", (), "uint8", (shape,))
            except (ValueError, MemoryError):
                continue
            calls = [lambda: table.reserve(2**64 // shape), lambda: table.activate([1, 2, 3, 4])]
            for call in calls:
                try:
                    call()
                except (ValueError, MemoryError):
                    continue
                raise SystemExit(f"{shape} bytes a row were accepted")
            assert (table.size(), table.capacity()) == (0, 0)
        """
    )
