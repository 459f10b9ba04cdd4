"""Rule 4: a call that raises leaves the table as it was, capacity included."""

import numpy as np
import pytest
from oracle import next_indices, snapshot

import tensorhash

GOOD_KEYS = np.arange(100, 150)[:, None]
GOOD_VALUES = [np.arange(50, dtype=np.float32)[:, None], np.zeros((50, 2), dtype=np.uint8)]


def small_table():
    """A full table with an erased entry: the next insert would grow it and reuse an index."""
    table = tensorhash.HashMap(
        4,
        "int64",
        (1,),
        value_dtypes=("float32", "uint8"),
        value_element_shapes=((1,), (2,)),
    )
    table.insert([[1], [2], [3], [4]], ([[1], [2], [3], [4]], [[1, 1], [2, 2], [3, 3], [4, 4]]))
    table.erase([[2]])
    return table


BAD_BATCHES = {
    "float keys": (GOOD_KEYS.astype(np.float64), GOOD_VALUES),
    "narrow keys": (GOOD_KEYS.astype(np.int32), GOOD_VALUES),
    "wide key rows": (np.zeros((50, 2), dtype=np.int64), GOOD_VALUES),
    "a key without rows": (np.int64(5), GOOD_VALUES),
    "too few values": (GOOD_KEYS, [GOOD_VALUES[0][:49], GOOD_VALUES[1]]),
    "too many values": (GOOD_KEYS[:49], GOOD_VALUES),
    "bad second column": (GOOD_KEYS, [GOOD_VALUES[0], GOOD_VALUES[1][:, :1]]),
    "dtype of second column": (GOOD_KEYS, [GOOD_VALUES[0], GOOD_VALUES[1].astype(np.int8)]),
    "one column of two": (GOOD_KEYS, GOOD_VALUES[:1]),
    "three columns": (GOOD_KEYS, [*GOOD_VALUES, GOOD_VALUES[0]]),
    "no values": (GOOD_KEYS, []),
    "a list that does not fit": ([[1], [2**63]], [[[1], [2]], [[1, 1], [1, 1]]]),
    "a value list that does not fit": ([[8], [9]], [[[1], [2]], [[1, 1], [1, 256]]]),
    "a ragged list": ([[8], [9, 10]], [[[1], [2]], [[1, 1], [1, 1]]]),
    "text": (["a", "b"], [[[1], [2]], [[1, 1], [1, 1]]]),
    "nothing": (None, GOOD_VALUES),
}


@pytest.mark.parametrize("name", ["insert", "insert_or_assign", "accumulate"])
@pytest.mark.parametrize("case", BAD_BATCHES)
def test_rule_04_a_bad_batch_changes_nothing(name, case):
    keys, values = BAD_BATCHES[case]
    table = small_table()
    before, following = snapshot(table), next_indices(table)
    with pytest.raises((TypeError, ValueError)):
        getattr(table, name)(keys, values)
    assert snapshot(table) == before
    assert next_indices(table) == following
    table.validate()


@pytest.mark.parametrize("name", ["activate", "erase", "find", "contains", "get"])
@pytest.mark.parametrize("case", ["float keys", "narrow keys", "wide key rows", "nothing"])
def test_rule_04_bad_keys_change_nothing(name, case):
    table = small_table()
    before = snapshot(table)
    with pytest.raises((TypeError, ValueError)):
        getattr(table, name)(BAD_BATCHES[case][0])
    assert snapshot(table) == before


@pytest.mark.parametrize("reduce", ["mean", "", "SUM", ["sum"] * 3, [], 3, ["sum", "mode"]])
def test_rule_04_a_bad_reduce_changes_nothing(reduce):
    table = small_table()
    before = snapshot(table)
    with pytest.raises((TypeError, ValueError), match="reduce"):
        table.accumulate(GOOD_KEYS, GOOD_VALUES, reduce=reduce)
    assert snapshot(table) == before


@pytest.mark.parametrize("capacity", [-1, -(2**40), 2**31, 2**40, 2**63, 2**80, 1.5, "5", None])
def test_rule_04_a_bad_reserve_changes_nothing(capacity):
    table = small_table()
    before = snapshot(table)
    with pytest.raises((TypeError, ValueError), match="capacity"):
        table.reserve(capacity)
    assert snapshot(table) == before


def test_rule_04_a_batch_beyond_the_memory_changes_nothing(run_program):
    run_program(
        """
        import resource
        import numpy as np
        import tensorhash

        table = tensorhash.HashMap(1000, "int64", (), "int64", (4,))
        keys = np.arange(1000)
        table.insert(keys, np.repeat(keys[:, None], 4, axis=1))
        table.erase(keys[10:20])
        many = np.arange(3_000_000)
        values = np.broadcast_to(np.int64(7), (3_000_000, 4))
        before = (table.size(), table.capacity(), table.memory_usage())
        listing = [array.tobytes() for array in (*table.items(), table.active_buf_indices())]

        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + (48 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        calls = [
            lambda: table.insert(many, values),
            lambda: table.insert_or_assign(many, values),
            lambda: table.accumulate(many, values),
            lambda: table.activate(many),
            lambda: table.reserve(500_000_000),
            lambda: tensorhash.HashMap(500_000_000, "int64", (), "int64", ()),
        ]
        for call in calls:
            try:
                call()
            except MemoryError:
                pass
            else:
                raise SystemExit("no MemoryError")
            assert (table.size(), table.capacity(), table.memory_usage()) == before
            now = [array.tobytes() for array in (*table.items(), table.active_buf_indices())]
            assert now == listing
            table.validate()
        indices, _ = table.insert(np.array([-5]), np.zeros((1, 4), dtype=np.int64))
        assert indices.tolist() == [19]
        """
    )


def test_rule_04_after_ctrl_c_a_batch_is_complete_or_never_started(run_program):
    # Send the signal at varying times until it certainly hit a running batch.
    run_program(
        """
        import os, signal, threading, time
        import numpy as np
        import tensorhash

        # A shell that runs this in the background ignores the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        keys = np.random.default_rng(0).integers(0, 2**60, 1_000_000)
        distinct = len(np.unique(keys))
        complete = 0
        for attempt in range(200):
            table = tensorhash.HashSet(0, "int64", ())
            ready = threading.Event()

            def interrupt():
                ready.wait()
                time.sleep(0.0007 * (attempt % 20))
                os.kill(os.getpid(), signal.SIGINT)

            sender = threading.Thread(target=interrupt)
            sender.start()
            returned = interrupted = False
            try:
                ready.set()
                table.insert(keys)
                returned = True
                sender.join()
                time.sleep(1)
            except KeyboardInterrupt:
                interrupted = True
            sender.join()
            # Python drops an interrupt in a finalizer; such a round proves nothing.
            if not interrupted:
                continue
            assert table.size() in (0, distinct), table.size()
            table.validate()
            if not returned and table.size() == distinct:
                assert table.find(keys)[1].all()
                complete += 1
            if complete == 3:
                break
        assert complete == 3
        """
    )
