"""Rule 8: forks, spawned workers and threads, each in its own process."""

import pytest

SETS = """
import os, sys
import numpy as np
import tensorhash

def filled(rows=200_000):
    table = tensorhash.HashMap(0, "int64", (), "int64", ())
    keys = np.arange(rows)
    table.insert(keys, keys * 2)   # big enough to wake the pool
    return table, keys

def check(table, keys):
    assert np.array_equal(table.get(keys), keys * 2)
    table.validate()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_rule_08_a_table_works_in_dataloader_workers(run_program, method):
    pytest.importorskip("torch")
    source = """
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, table):
        self.table = table

    def __len__(self):
        return 40

    def __getitem__(self, row):
        keys = torch.arange(row * 5000, (row + 1) * 5000)
        indices, found = self.table.find(keys)
        assert found.all()
        own = tensorhash.HashSet(0, torch.int64, ())
        own.insert(keys.repeat(3))
        assert own.size() == 5000
        self.table.insert_or_assign(keys[:10] - 1000000, keys[:10])
        return self.table.get(keys)

if __name__ == "__main__":
    table, keys = filled()
    loader = DataLoader(Rows(table), batch_size=4, num_workers=2, multiprocessing_context="METHOD")
    for _ in range(2 if "METHOD" == "fork" else 1):
        got = torch.cat([batch.flatten() for batch in loader])
        assert torch.equal(got, torch.arange(200_000) * 2)
        check(table, keys)
        assert table.size() == 200_000
    print("done")
""".replace("METHOD", method)
    assert "done" in run_program(SETS, source)


@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_rule_08_after_a_fork_both_sides_work(run_program, threads):
    source = """
table, keys = filled()
for generation in range(4):
    child = os.fork()
    if child == 0:
        try:
            check(table, keys)
            table.insert(keys + 1_000_000, keys)
            assert table.size() == 400_000
            table.erase(keys[::2])
            table.validate()
            grandchild = os.fork()
            if grandchild == 0:
                own = tensorhash.unique(np.tile(keys, 3))
                os._exit(0 if len(own) == 200_000 else 7)
            assert os.waitpid(grandchild, 0)[1] == 0
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    check(table, keys)
    assert os.waitpid(child, 0)[1] == 0
    check(table, keys)
"""
    run_program(SETS, source, TENSORHASH_NUM_THREADS=threads)


def test_rule_08_a_fork_while_other_threads_use_other_tables_leaves_a_working_child(run_program):
    source = """
import threading

mine, keys = filled()
stop = threading.Event()

def busy():
    other = tensorhash.HashSet(0, "int64", ())
    while not stop.is_set():
        other.insert(np.random.randint(0, 1 << 60, 50_000))
        other.clear()

workers = [threading.Thread(target=busy) for _ in range(3)]
for worker in workers:
    worker.start()
try:
    for _ in range(20):
        child = os.fork()
        if child == 0:
            check(mine, keys)
            mine.insert(keys + 1_000_000, keys)
            os._exit(0 if mine.size() == 400_000 else 1)
        assert os.waitpid(child, 0)[1] == 0
finally:
    stop.set()
    for worker in workers:
        worker.join()
check(mine, keys)
"""
    run_program(SETS, source)


def test_rule_08_multiprocessing_pools_take_and_return_tables(run_program):
    source = """
import multiprocessing

def add(table):
    table.accumulate(np.arange(1000), np.ones(1000, dtype=np.int64))
    return table

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            table, keys = filled(1000)
            for back in pool.map(add, [table] * 6):
                assert np.array_equal(back.get(keys), keys * 2 + 1)
                back.validate()
            check(table, keys)
"""
    run_program(SETS, source)


def test_rule_08_the_process_ends_cleanly_with_tables_and_threads_alive(run_program):
    source = """
import threading

table, keys = filled()
views = [table.key_tensor(), table.value_tensor()]
worker = threading.Thread(target=lambda: [table.find(keys) for _ in range(50)], daemon=True)
worker.start()
"""
    for _ in range(5):
        run_program(SETS, source)


def test_threads_of_the_pool_do_not_spin_when_idle(run_program):
    source = """
import resource, time

table, keys = filled()
usage = resource.getrusage(resource.RUSAGE_SELF)
before = usage.ru_utime + usage.ru_stime
time.sleep(1)
usage = resource.getrusage(resource.RUSAGE_SELF)
# A spinning thread would burn the whole second.
assert usage.ru_utime + usage.ru_stime - before < 0.5
"""
    run_program(SETS, source, TENSORHASH_NUM_THREADS="4")
