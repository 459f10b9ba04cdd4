"""A process ends cleanly after `destroy_process_group`, whatever tables are still there.

How often it is tried is in TENSORHASH_END_RUNS: a few times here, 50 before a release.
"""

import os

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

RUNS = int(os.environ.get("TENSORHASH_END_RUNS", "4"))

# Ranks are forked, so that torch is imported once, and end as any Python program does.
RANKS = """
import gc, os, signal, sys, weakref
import numpy as np
import torch, torch.distributed as dist
from tensorhash.distributed import DistributedHashMap

def begin(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

def forked(rank, store, program):
    process = os.fork()
    if process == 0:
        begin(rank, store)
        program(rank)
        sys.stdout.flush()
        raise SystemExit(0)
    return process

def ends(store, program):
    ranks = [forked(rank, store, program) for rank in range(2)]
    return [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in ranks]

def filled(group=None):
    made = DistributedHashMap(group, 0, "int64", (), "int64", ())
    keys = np.arange(1000)
    made.insert(keys, keys)
    return made
"""


def test_the_process_ends_cleanly_with_a_table_alive(run_program, tmp_path):
    main = """
def program(rank):
    global table
    table = filled()  # a global: it is there until the interpreter goes
    assert table.size() == 1000
    dist.destroy_process_group()

folder, runs = sys.argv[1], int(sys.argv[2])
bad = [end for run in range(runs) if (end := ends(f"{folder}/store-{run}", program)) != [0, 0]]
assert not bad, f"{len(bad)} of {runs} runs did not end cleanly: {bad}"
"""
    run_program(RANKS, main, arguments=[tmp_path, RUNS], GLOO_SOCKET_IFNAME="lo")


def test_a_table_keeps_no_group_alive_and_says_so_afterwards(run_program, tmp_path):
    main = """
def refused(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError as error:
        assert "process_group: destroyed by torch.distributed" in str(error), error
        assert "still there in .local" in str(error), error
        return
    raise AssertionError("nothing was raised")

def program(rank):
    table = filled()
    small = dist.new_group([0, 1])
    other = filled(small)
    groups = [weakref.ref(dist.group.WORLD), weakref.ref(small)]
    del small
    owned = table.local_size()
    dist.destroy_process_group()
    gc.collect()
    assert [group() for group in groups] == [None, None]
    for one in (table, other):
        refused(one.find, np.arange(3))
        refused(one.size)
        refused(lambda: one.process_group)
        one.local.validate()
        assert (one.rank, one.world_size) == (rank, 2)
    assert table.local_size() == owned > 0
    begin(rank, sys.argv[1] + "/again")
    again = filled()
    assert again.size() == 1000
    again.insert(*table.items())
    dist.destroy_process_group()

assert ends(sys.argv[1] + "/store", program) == [0, 0]
"""
    run_program(RANKS, main, arguments=[tmp_path], GLOO_SOCKET_IFNAME="lo")
