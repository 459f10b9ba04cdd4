"""release_memory() frees kept memory and leaves used memory alone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tensorhash

pytestmark = pytest.mark.alone


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_memory_of_a_deleted_table_is_kept_and_released():
    tensorhash.release_memory()
    assert tensorhash.release_memory() == 0
    table = tensorhash.HashMap(1_000_000, "int64", (), "int64", ())
    del table
    before = resident_bytes()
    freed = tensorhash.release_memory()
    assert freed > 16e6  # the key and the value buffer at least
    assert before - resident_bytes() > 0.9 * freed
    assert tensorhash.release_memory() == 0


def test_tables_and_results_in_use_are_not_touched():
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    keys = np.arange(300_000)
    indices, _ = table.insert(keys, keys * 3)
    tensorhash.release_memory()
    assert (indices == keys).all()
    assert (table.get(keys) == keys * 3).all()
    table.validate()


def test_a_forked_child_releases_its_own():
    table = tensorhash.HashSet(1_000_000, "int64", ())
    del table
    child = os.fork()
    if child == 0:
        good = tensorhash.release_memory() > 0 and tensorhash.release_memory() == 0
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tensorhash.release_memory() > 0
