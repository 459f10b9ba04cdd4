"""Rule 8: readers in parallel, writers alone; every result shows the table at one moment."""

import sys
import threading
import time

import numpy as np
import pytest
from oracle import ON_CPU, same

import tensorhash

BATCH = 500
BATCHES = 60


def run_threads(*functions):
    """Runs all functions at once; raises the exception of any of them."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("key_shape", [(), (3,)])
def test_rule_08_four_threads_find_while_one_inserts(key_shape):
    table = tensorhash.HashMap(0, "int64", key_shape, "int64", ())
    numbers = np.arange(BATCH * BATCHES)
    keys = numbers if key_shape == () else np.repeat(numbers[:, None], 3, axis=1)
    done = threading.Event()
    seen = []

    def write():
        try:
            for start in range(0, len(numbers), BATCH):
                part = slice(start, start + BATCH)
                table.insert(keys[part], numbers[part] * 3)
        finally:
            done.set()

    def read():
        before = 0
        finished = False
        while not finished:
            finished = done.is_set()
            indices, found = table.find(keys)
            count = int(found.sum())
            # The table at one moment: whole batches, never fewer than before.
            assert count % BATCH == 0
            assert count >= before
            assert found[:count].all()
            same(indices[:count], numbers[:count].astype(np.int32))
            assert (indices[count:] == -1).all()
            values = table.get(keys[:count])
            same(values, numbers[:count] * 3)
            before = count
            seen.append(count)
        assert before == len(numbers)

    run_threads(write, read, read, read, read)
    table.validate()
    assert len(seen) >= 4


def test_rule_08_listings_show_one_moment_while_another_thread_erases():
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    keys = np.arange(BATCH * 20)
    table.insert(keys, keys * 7)
    done = threading.Event()

    def write():
        try:
            for turn in range(60):
                part = keys[(turn % 20) * BATCH :][:BATCH]
                table.erase(part)
                table.insert(part, part * 7)
        finally:
            done.set()

    def read():
        finished = False
        while not finished:
            finished = done.is_set()
            listed, values = table.items()
            same(values, listed * 7)
            ordered = np.sort(listed)
            missing = np.setdiff1d(keys, ordered)
            assert len(missing) in (0, BATCH)
            assert len(missing) == 0 or missing[-1] - missing[0] == BATCH - 1
            same(np.unique(ordered), ordered)

    run_threads(write, read, read, read)
    table.validate()
    assert table.size() == len(keys)


def test_rule_08_many_writing_threads_leave_a_valid_table():
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    keys = np.arange(20_000)

    def write():
        for _ in range(40):
            table.accumulate(keys, np.ones(20_000, dtype=np.int64))

    run_threads(*[write] * 5)
    table.validate()
    same(table.get(keys), np.full(20_000, 200))


def test_rule_08_two_tables_in_two_threads_do_not_deadlock():
    tables = [tensorhash.HashSet(0, "int64", ()) for _ in range(4)]

    def use(table):
        for start in range(0, 100_000, 5000):
            table.insert(np.arange(start, start + 5000))

    run_threads(*[lambda table=table: use(table) for table in tables])
    for table in tables:
        assert table.size() == 100_000
        table.validate()


@pytest.mark.parametrize("name", ["insert", "find", "erase", "get"])
def test_rule_08_the_gil_is_released(name):
    rows = 4_000_000 if ON_CPU else 100_000  # emulated devices are slow
    keys = np.random.default_rng(0).integers(0, 2**60, rows)
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    if name != "insert":
        table.insert(keys, keys)
    arguments = (keys, keys) if name == "insert" else (keys,)
    ticks = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.0001)

    counter = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    counter.start()
    try:
        # From here on, the other thread runs only if a call releases the GIL.
        sys.setswitchinterval(1000)
        before = after = ticks[0]
        for _ in range(20):  # a call may be over before a busy machine wakes the other thread
            getattr(table, name)(*arguments)
            after = ticks[0]
            if after > before:
                break
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join()
    assert after > before
