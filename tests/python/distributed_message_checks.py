"""Checks of messages for test_distributed.py: chunks, odd columns, and what else a group sends."""

import gc

import numpy as np
import torch
import torch.distributed as dist
from oracle import refused, same

import tensorhash
from tensorhash import _core
from tensorhash.distributed import DistributedHashMap, calls, messages
from tensorhash.distributed.batch import Batch

# Rows of 12, 1 and 1,600 bytes, and a dtype that NumPy does not have.
COLUMNS = {
    "value_dtypes": ["float32", "uint8", "float64", "bfloat16"],
    "value_element_shapes": [(3,), (), (200,), (5,)],
}


def values_of(keys):
    """A row of every column for each key."""
    numbers = torch.from_numpy(keys).to(torch.float64)[:, None]
    return [
        numbers.to(torch.float32).repeat(1, 3),
        numbers[:, 0].to(torch.uint8),
        numbers.repeat(1, 200),
        (numbers % 100).to(torch.bfloat16).repeat(1, 5),
    ]


def check_messages_of_many_chunks_and_columns_of_all_widths(group, folder):
    whole, messages._CHUNK = messages._CHUNK, 1000
    try:
        table = DistributedHashMap(group, 0, torch.int64, (), **COLUMNS)
        one = tensorhash.HashMap(0, torch.int64, (), **COLUMNS)
        for step in range(2):
            for rank in range(table.world_size):  # rank 0 has no rows at first
                rng = np.random.default_rng([3, step, rank])
                keys = rng.integers(0, 10**4, 900 * (rank + step))
                new = one.insert(torch.from_numpy(keys), values_of(keys))[1]
                if rank == table.rank:
                    mine, expected = keys, new
            got = table.insert(torch.from_numpy(mine), values_of(mine))[1]
            assert torch.equal(got, expected)
        asked = torch.arange(3 * table.rank, 4000)
        default = [7, 8, torch.arange(200, dtype=torch.float64), 1.5]
        for got, wanted in zip(table.get(asked, default), one.get(asked, default), strict=True):
            assert got.dtype == wanted.dtype and torch.equal(got, wanted)
        assert table.size() == one.size()
        table.validate()
    finally:
        messages._CHUNK = whole


def check_the_callers_own_messages_stay_apart(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", ())
    rank, ranks = table.rank, table.world_size
    got = torch.zeros(3, dtype=torch.int64)
    for tag in (0, 1):
        waiting = dist.irecv(got, (rank - 1) % ranks, group=group, tag=tag)
        keys = np.arange(100) * (tag + 1)
        table.insert(keys, keys)
        same(table.get(keys), keys)
        dist.send(torch.full((3,), rank + 10 * tag), (rank + 1) % ranks, group=group, tag=tag)
        waiting.wait()
        assert got.tolist() == [(rank - 1) % ranks + 10 * tag] * 3


def check_more_rows_than_a_rank_can_take_are_refused_everywhere(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", ())
    keys = np.arange(50) + 50 * table.rank
    most = calls._MAX_ROWS
    try:
        calls._MAX_ROWS = 50 * table.world_size - 1  # all ranks together send more
        assert table.insert(keys, keys)[1].all()
        calls._MAX_ROWS = 20
        mine = np.bincount(table.owner(np.arange(50 * table.world_size)))[table.rank]
        error = refused(lambda: table.find(keys), "at most 20 rows")
        assert isinstance(error, ValueError if mine > 20 else RuntimeError)
        refused(lambda: table.insert(keys - 10**6, keys), "at most 20 rows")
    finally:
        calls._MAX_ROWS = most
    assert table.size() == 50 * table.world_size
    assert not table.contains(keys - 10**6).any()


def check_no_memory_waits_for_the_garbage_collector(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "float32", (3,))
    keys, values = np.arange(100), np.ones((100, 3), np.float32)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        table.insert(keys, values)
        table.accumulate(keys, values)
        table.get(keys)
        table.erase(keys)
        gc.collect()
        large = _core.Tensor, messages.Column, Batch, calls.Arrived
        assert [one for one in gc.garbage if isinstance(one, large)] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
