"""Tables free all their memory, and serve many threads at once.

One test has over 50 lines, because its threads share their state.
"""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_200_tables_leave_no_memory_behind():
    keys = tf.range(20_000, dtype=tf.int64)
    values = tf.zeros((20_000, 16))
    texts = tf.strings.as_string(keys[:2000])

    def cycle():
        table = thtf.HashTable(tf.int64, tf.float32, tf.zeros(16))
        table.insert(keys, values)
        table.lookup(keys)
        strings = thtf.HashTable(tf.string, tf.float32, tf.zeros(16))
        strings.insert(texts, values[:2000])
        thtf.StaticHashTable((keys[:100], values[:100]), tf.zeros(16))

    for _ in range(20):
        cycle()
    gc.collect()
    before = resident_bytes()
    for _ in range(200):
        cycle()
    gc.collect()
    # Each cycle holds 3 MB: a leak in one of twenty would show.
    assert resident_bytes() - before < 20e6


def test_readers_and_writers_from_many_threads():
    """Readers see whole rows: a value is [k * version] * 16 for one version, never a mixture."""
    for dtype in (tf.int64, tf.string):
        table = thtf.HashTable(dtype, tf.float32, tf.fill([16], -1.0))
        numbers = np.arange(1, 5001)
        keys = tf.strings.as_string(numbers) if dtype == tf.string else tf.constant(numbers)
        table.insert(keys, tf.repeat(tf.cast(numbers, tf.float32)[:, None], 16, 1))
        errors: list[str] = []
        stop = threading.Event()

        @tf.function
        def read(table=table, keys=keys):
            return table.lookup(keys)

        @tf.function
        def write(version, table=table, keys=keys, numbers=numbers):
            table.insert(keys, tf.repeat((tf.cast(numbers, tf.float32) * version)[:, None], 16, 1))

        def reader(read=read, numbers=numbers, errors=errors, stop=stop):
            while not stop.is_set():
                rows = read().numpy()
                version = rows[0, 0]
                if not (rows == (numbers * version).astype(np.float32)[:, None]).all():
                    errors.append(f"torn at version {version}")
                    return

        threads = [threading.Thread(target=reader) for _ in range(3)]
        for thread in threads:
            thread.start()
        for version in range(1, 40):
            write(tf.constant(float(version)))
        stop.set()
        for thread in threads:
            thread.join()
        assert errors == []
        assert int(table.size()) == 5000


@pytest.mark.parametrize("dtype", [tf.int64, tf.string], ids=lambda d: d.name)
def test_readers_while_a_table_grows_shrinks_and_is_cleared(dtype):
    """A row is present and whole, or absent and the default. Untouched keys are always present."""
    table = thtf.HashTable(dtype, tf.float32, tf.fill([8], -1.0))

    def keys_of(numbers):
        return tf.strings.as_string(numbers) if dtype == tf.string else tf.constant(numbers)

    def rows_of(numbers):
        return tf.repeat(tf.cast(numbers, tf.float32)[:, None], 8, 1)

    rounds, size = 6, 4000
    asked = np.random.default_rng(3).permutation(rounds * size)
    keys, whole = keys_of(asked), np.repeat(asked[:, None], 8, 1)
    lasting = asked < 100
    table.insert(keys_of(np.arange(100)), rows_of(np.arange(100)))
    clearing, stop, wrong, seen = threading.Event(), threading.Event(), [], set()

    def look():
        before = clearing.is_set()
        values, there = (part.numpy() for part in table.lookup(keys, return_exists=True))
        if not (values == np.where(there[:, None], whole, -1)).all():
            wrong.append("a row that is not whole")
        if not (before or clearing.is_set()) and not there[lasting].all():
            wrong.append("a key that was never removed is not there")
        seen.add(int(there.sum()))

    def reader():
        while not stop.is_set() and not wrong:
            try:
                look()
            except Exception as error:
                wrong.append(str(error))

    threads = [threading.Thread(target=reader) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        for start in range(0, rounds * size, size):  # grows, because nothing was reserved
            numbers = np.arange(max(start, 100), start + size)
            table.insert(keys_of(numbers), rows_of(numbers))
        table.remove(keys_of(np.arange(100, rounds * size, 3)))
        table.remove(keys_of(np.arange(100, rounds * size)))
    clearing.set()
    for _ in range(10):
        table.insert(keys, rows_of(asked))
        table.clear()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(seen) > 1  # the readers did see it change
    assert int(table.size()) == 0


def test_accumulating_threads_lose_nothing():
    table = thtf.HashTable(tf.int64, tf.int64, 0)
    keys = np.random.default_rng(0).integers(0, 3000, (4, 20, 500))

    def add(mine):
        for batch in mine:
            table.accumulate(batch, np.ones(500, np.int64))

    threads = [threading.Thread(target=add, args=(mine,)) for mine in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    distinct, counts = np.unique(keys, return_counts=True)
    assert table.lookup(distinct).numpy().tolist() == counts.tolist()
    assert int(table.size()) == len(distinct)


def test_parallel_finds_inside_one_graph():
    table = thtf.HashTable(tf.int64, tf.int64, -1)
    table.insert(np.arange(1000), np.arange(1000) * 2)
    data = (
        tf.data.Dataset.range(64)
        .map(lambda i: table.lookup(tf.range(i, i + 500)), num_parallel_calls=8)
        .as_numpy_iterator()
    )
    for i, row in enumerate(data):
        assert (row == np.arange(i, i + 500) * 2).all()
