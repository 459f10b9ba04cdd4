"""A process exits cleanly after `destroy_process_group`, even if tables still exist.

TENSORHASH_END_RUNS sets the number of runs: a few here, 50 before a release.
"""

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

RUNS = int(os.environ.get("TENSORHASH_END_RUNS", "4"))
ENVIRONMENT = {"TENSORHASH_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}

BEGIN = """
import atexit, gc, os, sys, time, weakref
import numpy as np
import torch, torch.distributed as dist
from tensorhash.distributed import DistributedHashMap

rank, folder = int(sys.argv[1]), sys.argv[2]

def begin(store):
    where = f"file://{folder}/{store}"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=2)

def filled(group=None):
    made = DistributedHashMap(group, 0, "int64", (), "int64", ())
    keys = np.arange(1000)
    made.insert(keys, keys)
    return made

def destroy(moment):
    # Wait until both ranks have sent everything: closing early could cut off the other.
    open(f"{folder}/{moment}-{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/{moment}-{r}") for r in range(2)):
        time.sleep(0.01)
    dist.destroy_process_group()

begin("store")
"""

# The table is a global, so it lives until the interpreter exits.
WITH_A_TABLE = """
table = filled()
assert table.size() == 1000
destroy("end")
"""

AFTERWARDS = """
def refused(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError as error:
        assert "process_group: destroyed by torch.distributed" in str(error), error
        assert "still in .local" in str(error), error
        return
    raise AssertionError("nothing was raised")

table = filled()
small = dist.new_group([0, 1])
other = filled(small)
groups = [weakref.ref(dist.group.WORLD), weakref.ref(small)]
del small
owned = table.local_size()
destroy("first")
gc.collect()
assert [group() for group in groups] == [None, None]
for one in (table, other):
    refused(one.find, np.arange(3))
    refused(one.size)
    refused(lambda: one.process_group)
    one.local.validate()
    assert (one.rank, one.world_size) == (rank, 2)
assert table.local_size() == owned > 0
begin("again")
again = filled()
again.insert(*table.items())
assert again.size() == 1000
destroy("end")
"""


WITH_A_FORK = """
table = filled()
keys = np.arange(1000)
process = os.fork()
if process == 0:
    try:
        table.size()
        os._exit(1)
    except RuntimeError as error:
        if f"only process {os.getppid()} may call" not in str(error):
            os._exit(2)
    atexit._run_exitfuncs()  # what sys.exit() does, before gloo waits for threads that a fork lacks
    os._exit(0)
assert os.waitpid(process, 0)[1] == 0
assert table.size() == 1000
assert (table.get(keys) == keys).all()
destroy("end")
"""


def run_ranks(program, folder):
    """Runs the program as two ranks in separate processes; both must exit cleanly."""
    folder.mkdir()
    file = folder / "program.py"
    file.write_text(BEGIN + textwrap.dedent(program))
    ranks = [
        subprocess.Popen(
            [sys.executable, str(file), str(rank), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said


@pytest.mark.parametrize("run", range(RUNS))
def test_the_process_ends_cleanly_with_a_table_alive(tmp_path, run):
    run_ranks(WITH_A_TABLE, tmp_path / f"run-{run}")


def test_a_forked_child_ends_without_a_word_to_the_neighbours(tmp_path):
    run_ranks(WITH_A_FORK, tmp_path / "fork")


def test_a_table_keeps_no_group_alive_and_says_so_when_the_group_is_gone(tmp_path):
    run_ranks(AFTERWARDS, tmp_path / "afterwards")
