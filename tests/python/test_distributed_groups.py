"""Groups that cannot send CPU memory: the table creates a gloo group for itself.

nccl is such a group but needs GPUs; these groups imitate it on a machine without GPUs.
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
    # The fake backend does not expose its timeout, so the new group gets torch's default.
    assert (patience == PATIENCE) == (backend != "fake"), patience

    # Only members take part, in the order of their group: the third process makes no call.
    some = dist.new_group([2, 0], sort_ranks=False)
    if rank != 1:
        part = table_of(some)
        assert (part.rank, part.world_size) == (0 if rank == 2 else 1, 2)
        works(part, f"{folder}/some")
        places, new = part.insert(torch.tensor([-5]), torch.tensor([rank]))
        assert new.item() == (rank == 2)  # of equal keys the first rank wins, here rank 2

def child(*arguments):
    # Fork, so that torch is imported once and not by every rank.
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


# The first has no CPU backend at all, like nccl; the second has one that sends nothing.
@pytest.mark.parametrize("backend", ["cuda:gloo", "fake"])
def test_a_group_that_cannot_send_cpu_memory_gets_a_gloo_group_beside_it(
    run_program, tmp_path, backend
):
    run_program(RANKS, arguments=[backend, tmp_path], GLOO_SOCKET_IFNAME="lo")
