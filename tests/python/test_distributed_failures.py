"""If a rank dies during a call, the others raise in time and keep their entries."""

import os

import pytest

from tensorhash import _core

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

neighbours = pytest.importorskip("tensorhash.distributed.neighbours")

pytestmark = pytest.mark.alone

RANKS = """
import datetime, os, signal, sys, time, traceback
import numpy as np
import torch, torch.distributed as dist
from tensorhash.distributed import DistributedHashMap
from tensorhash.distributed.neighbours import Neighbours, _Peer

TIMEOUT = 8

def only_send():
    Neighbours._open = lambda self, peer, offer: False

def table_of(rank, store):
    torch.set_num_threads(1)
    # Starting may take long on a busy machine; only the table's own group has a short timeout.
    start = datetime.timedelta(seconds=180)
    where = f"file://{store}"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=3, timeout=start)
    group = dist.new_group(timeout=datetime.timedelta(seconds=TIMEOUT))
    return DistributedHashMap(group, 0, "int64", (), "int64", ())

def dying_at(table, moment):
    # Rank 2 dies right before the `moment`-th message of the following calls.
    sent = 0
    def counting(send):
        def send_or_die(*arguments, **options):
            nonlocal sent
            sent += 1
            if table.rank == 2 and sent == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return send(*arguments, **options)
        return send_or_die
    table._exchange.agree = counting(table._exchange.agree)
    table._exchange.rows = counting(table._exchange.rows)

def run(rank, store, moment):
    table = table_of(rank, store)
    keys = np.arange(5000) * 3 + rank
    table.insert(keys, keys)
    mine = dict(zip(*[part.tolist() for part in table.items()]))
    dying_at(table, moment)

    start = time.monotonic()
    try:
        table.insert_or_assign(keys + 100_000, -keys)
        raise AssertionError("nothing was raised")
    except RuntimeError as error:
        assert f"rank {rank} of 3" in str(error), error
    assert time.monotonic() - start < TIMEOUT + 10

    # The rank keeps its entries, and has all or none of its rows of the failed call.
    table.local.validate()
    now = dict(zip(*[part.tolist() for part in table.items()]))
    assert mine.items() <= now.items()
    added = {key: now[key] for key in now.keys() - mine.keys()}
    assert all(value == 100_000 - key for key, value in added.items())
    assert bool(added) == (moment >= 4), len(added)

    start = time.monotonic()
    try:
        table.size()
        raise AssertionError("a later call was not refused")
    except RuntimeError as error:
        assert "lost its peers" in str(error), error
    assert time.monotonic() - start < 2

def save(rank, store, moment, folder):
    table = table_of(rank, store)
    keys = np.arange(900) * 3 + rank
    table.insert(keys, keys)
    table.save(folder)
    table.insert(keys + 100_000, keys)
    dying_at(table, moment)
    try:
        table.save(folder)
        raise AssertionError("nothing was raised")
    except RuntimeError as error:
        assert f"rank {rank} of 3" in str(error), error

def child(run, *arguments):
    # Fork, so that torch is imported once and not by every rank.
    process = os.fork()
    if process == 0:
        try:
            run(*arguments)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return process
"""


# The messages of a call that adds keys: agree, rows to owners, agree on room, agree on results,
# results.
MOMENTS = {"shared": (1, 2, 4, 5), "sent": (2, 4)}


@pytest.mark.parametrize("rows", MOMENTS)
def test_a_dead_rank_is_an_error_on_every_other(run_program, tmp_path, rows):
    main = """
folder = sys.argv[1]
if sys.argv[2] == "sent":
    only_send()
for moment in MOMENTS:
    ranks = [child(run, rank, f"{folder}/store-{moment}", moment) for rank in range(3)]
    ends = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in ranks]
    assert ends == [0, 0, -signal.SIGKILL], (moment, ends)
"""
    source = main.replace("MOMENTS", str(MOMENTS[rows]))
    run_program(RANKS, source, arguments=[tmp_path, rows], GLOO_SOCKET_IFNAME="lo")


def test_a_rank_that_leaves_or_says_nothing_is_an_error_on_every_other(run_program, tmp_path):
    main = """
def leaving(rank, store):
    table = table_of(rank, store)
    if rank == 2:
        table._exchange._neighbours.leave()
        return
    refused(table, "rank 2 has left the group")

def silent(rank, store):
    table = table_of(rank, store)
    assert table._exchange._neighbours.are_all
    if rank == 2:
        time.sleep(2 * TIMEOUT)
        return
    refused(table, f"sent nothing for {TIMEOUT} seconds")

def refused(table, words):
    start = time.monotonic()
    try:
        table.size()
        raise AssertionError("nothing was raised")
    except RuntimeError as error:
        assert words in str(error) and "still in .local" in str(error), error
    assert time.monotonic() - start < TIMEOUT + 10

for test in (leaving, silent):
    ranks = [child(test, rank, f"{sys.argv[1]}/{test.__name__}") for rank in range(3)]
    assert [os.waitpid(process, 0)[1] for process in ranks] == [0, 0, 0], test
"""
    run_program(RANKS, main, arguments=[tmp_path], GLOO_SOCKET_IFNAME="lo")


def test_a_rank_that_ends_after_its_last_call_waits_for_its_readers(run_program, tmp_path):
    main = """
def slow(self, note):
    time.sleep(0.5)
    self.block = None
    return fast(self, note)

fast = _Peer.block_at

def ending(rank, store):
    table = table_of(rank, store)
    keys = np.arange(5000) * 3 + rank
    table.insert(keys, keys)
    if rank != 2:
        _Peer.block_at = slow
    assert table.find(keys)[1].all()
    near = table._exchange._neighbours
    near.leave()
    assert near._block is None and not near.peers

ranks = [child(ending, rank, f"{sys.argv[1]}/store") for rank in range(3)]
assert [os.waitpid(process, 0)[1] for process in ranks] == [0, 0, 0]
"""
    run_program(RANKS, main, arguments=[tmp_path], GLOO_SOCKET_IFNAME="lo")


def test_a_failure_refuses_all_tables_of_the_group_and_reaches_all_ranks_at_once(
    run_program, tmp_path
):
    main = """
def interrupt(self, peer):
    raise KeyboardInterrupt

def refused(call, words):
    start = time.monotonic()
    try:
        call()
        raise AssertionError("nothing was raised")
    except RuntimeError as error:
        assert words in str(error), error
    assert time.monotonic() - start < TIMEOUT / 2

def failing(rank, store):
    table = table_of(rank, store)
    other = DistributedHashMap(table.process_group, 0, "int64", (), "int64", ())
    if rank == 0:
        # Between post and take: the answers of the others stay in their boxes.
        take, Neighbours.take_numbers = Neighbours.take_numbers, interrupt
        try:
            table.size()
        except KeyboardInterrupt:
            Neighbours.take_numbers = take
    else:
        assert table.size() == 0
        refused(other.size, "has left the group")
    refused(other.size, "lost its peers")
    refused(table.size, "lost its peers")
    if rank == 0:
        time.sleep(TIMEOUT / 2)

ranks = [child(failing, rank, f"{sys.argv[1]}/store") for rank in range(3)]
assert [os.waitpid(process, 0)[1] for process in ranks] == [0, 0, 0]
"""
    run_program(RANKS, main, arguments=[tmp_path], GLOO_SOCKET_IFNAME="lo")


def own_neighbour():
    """A rank that is its own neighbour."""
    near = neighbours.Neighbours()
    assert near._open(0, near._offer(1))
    return near


def test_a_message_of_another_kind_is_refused():
    near = own_neighbour()
    block, note = near.room(1000)
    near.post(0, (*note, 5))
    got, at = near.take_rows(0, 5)
    assert (got.bytes, at) == (block.bytes, 0)
    assert near.peers[0].boxes.taken(0) == 1
    near.post(0, (*note, 5))
    with pytest.raises(RuntimeError, match="sent 5 rows instead of 4 rows"):
        near.take_rows(0, 4)
    near.post(0, (1, 0, 5, 5))
    with pytest.raises(RuntimeError, match="its part of an agreement instead of 5 rows"):
        near.take_rows(0, 5)
    near.post(0, (*note, 5))
    with pytest.raises(RuntimeError, match="sent rows instead of"):
        near.take_numbers(0)
    near.break_off("broken")
    with pytest.raises(RuntimeError, match="rank 0 has left the group"):
        near.take_numbers(0)


def test_a_process_of_another_namespace_is_not_opened():
    near = neighbours.Neighbours()
    offer = near._offer(1)
    assert not near._open(0, offer._replace(namespace=neighbours._process_namespace() + 1))
    assert near._open(0, offer)


def test_a_neighbour_costs_one_descriptor():
    near, other = neighbours.Neighbours(), neighbours.Neighbours()
    offer = near._offer(1)
    other._offer(1)
    before = len(os.listdir("/proc/self/fd"))
    assert other._open(0, offer)
    assert len(os.listdir("/proc/self/fd")) == before + 1  # tells whether its process lives
    block = _core.SharedMemory(4096, "tensorhash-test")
    assert _core.SharedMemory.open(os.getpid(), block.file, "tensorhash-test").file == -1


def test_a_rank_that_dies_while_saving_leaves_the_old_or_the_new_checkpoint(run_program, tmp_path):
    # The messages of a save: agree on the folder, on the files, that rank 0 sees them, on the
    # manifest.
    main = """
from tensorhash.distributed import load_hash_map

place = sys.argv[1]
for moment, entries in ((1, [2700]), (2, [2700]), (3, [2700]), (4, [2700, 5400])):
    folder = f"{place}/checkpoint-{moment}"
    store = f"{place}/store-{moment}"
    ranks = [child(save, rank, store, moment, folder) for rank in range(3)]
    ends = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in ranks]
    assert ends == [0, 0, -signal.SIGKILL], (moment, ends)
    whole = load_hash_map(folder)
    whole.validate()
    assert whole.size() in entries, (moment, whole.size())
    assert (whole.get(np.arange(2700)) == np.arange(2700)).all()
"""
    run_program(RANKS, main, arguments=[tmp_path], GLOO_SOCKET_IFNAME="lo")
