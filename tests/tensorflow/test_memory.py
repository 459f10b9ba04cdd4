"""Running out of memory is ResourceExhausted and leaves the table as it was."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
    import resource, sys
    import numpy as np, tensorflow as tf
    import tensorhash.tensorflow as thtf

    def limited(more, call):
        "Whether the call found enough in `more` bytes of further address space."
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, hard))
        try:
            call()
            return True
        except tf.errors.ResourceExhaustedError:
            return False
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

    def check(table):
        assert int(table.size()) == 3
        assert table.lookup(["a", "b", "c", "d"]).numpy().tolist() == [1, 2, 3, 0]
        assert sorted(table.export()[0].numpy()) == [b"a", b"b", b"c"]

    many = tf.strings.as_string(tf.range(1_000_000))
    ones = tf.ones(1_000_000)
    warm = thtf.HashTable(tf.string, tf.float32, 0.0)
    warm.insert(many, ones)
    kept = [warm]
    for call in (
        lambda: table.insert(many, ones),
        lambda: tf.raw_ops.LookupTableInsertV2(
            table_handle=table.resource_handle, keys=many, values=ones
        ),
        lambda: table.reserve(4_000_000),
    ):
        table = thtf.HashTable(tf.string, tf.float32, 0.0)
        kept.append(table)  # its freed memory would be reused without a new allocation
        table.insert(["a", "b", "c"], [1.0, 2.0, 3.0])
        check(table)
        tries = 1
        while not limited(tries << 23, call):
            check(table)
            tries += 1
        assert 1 < tries < 60, tries
        table.insert(["d"], [4.0])
        assert table.lookup(["a", "d"]).numpy().tolist() == [1, 4]
"""


def test_a_string_table_survives():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
