"""Groups that cannot send memory of the CPU: the table makes one of gloo beside them.

nccl is such a group, but needs GPUs; these are its kind as far as a machine without any can make them.
"""

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

RANKS = """
import datetime, os, sys, traceback
import numpy as np
import torch, torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # registers "fake"
from tensorhash.distributed import DistributedHashMap, load_hash_map

PATIENCE = datetime.timedelta(seconds=123)

def works(table, folder):
    keys = torch.arange(500) * 7 + table.rank
    new = table.insert(keys, keys * 2)[1]
    assert new.all() and new.device.type == "cpu"
    assert table.size() == 500 * table.world_size
    neighbour = keys - table.rank + (table.rank + 1) % table.world_size
    assert torch.equal(table.get(neighbour), neighbour * 2)
    table.save(folder)
    again = DistributedHashMap.load(folder, table.process_group)
    assert again.process_group is table.process_group
    assert torch.equal(again.get(neighbour), neighbour * 2)

def table_of(group):
    return DistributedHashMap(group, 0, torch.int64, (), torch.int64, ())

def run(rank, backend, folder):
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", 3)
    dist.init_process_group(backend, store=store, rank=rank, world_size=3, timeout=PATIENCE)
    table = table_of(None)
    works(table, f"{folder}/all")
    assert table_of(dist.group.WORLD).process_group is table.process_group
    assert "cpu:gloo" in dist.get_backend_config(table.process_group)
    patience = table.process_group._get_backend(torch.device("cpu")).options._timeout
    # The stand-in for a backend that keeps its patience to itself gets torch's own.
    assert (patience == PATIENCE) == (backend != "fake"), patience

    # Members alone, in the order of their group: the third process calls nothing of ours.
    some = dist.new_group([2, 0], sort_ranks=False)
    if rank != 1:
        part = table_of(some)
        assert (part.rank, part.world_size) == (0 if rank == 2 else 1, 2)
        works(part, f"{folder}/some")
        places, new = part.insert(torch.tensor([-5]), torch.tensor([rank]))
        assert new.item() == (rank == 2)  # of equal keys the first rank's wins, which is 2 here

def child(*arguments):
    # Forked, so that torch is imported once and not by every rank.
    process = os.fork()
    if process == 0:
        try:
            run(*arguments)
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return process

children = [child(rank, *sys.argv[1:]) for rank in range(3)]
ends = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in children]
assert ends == [0, 0, 0], ends
"""


# The first has no backend for the CPU at all, as nccl; the second has one that sends nothing.
@pytest.mark.parametrize("backend", ["cuda:gloo", "fake"])
def test_a_group_that_cannot_send_memory_of_the_cpu_gets_one_beside_it(
    run_program, tmp_path, backend
):
    run_program(RANKS, arguments=[backend, tmp_path], GLOO_SOCKET_IFNAME="lo")
