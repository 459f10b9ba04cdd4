"""Checks of checkpoints, run by the ranks of test_distributed.py: none is lost or half loaded.

One check has over 50 lines: it is a list of kinds of damage to one checkpoint.
"""

import pickle

import numpy as np
import torch.distributed as dist
from oracle import refused, same

import tensorhash
from tensorhash.distributed import DistributedHashMap, load_hash_map, load_into


def check_a_damaged_checkpoint_is_refused_on_every_rank(group, folder):
    table = DistributedHashMap(group, 0, "int32", (2,), "float64", ())
    keys = np.random.default_rng(table.rank).integers(-99, 99, (500, 2)).astype(np.int32)
    table.insert(keys, keys.sum(1).astype(np.float64))
    path = folder / "damaged"
    table.save(path)
    old = {file.name for file in path.iterdir()}
    dist.barrier(group)
    table.save(path)
    now = sorted(path.iterdir())
    assert len(now) == table.world_size + 1  # the files of the first save are gone
    assert {file.name for file in now} & old == {"checkpoint.json"}
    dist.barrier(group)
    victim = now[1]
    image = victim.read_bytes()
    manifest = (path / "checkpoint.json").read_bytes()

    def with_damage(name, content, *parts):
        dist.barrier(group)
        # Only one rank changes the file: another would read it while it is being damaged.
        if table.rank == 0:
            whole = (path / name).read_bytes()
            (path / name).unlink() if content is None else (path / name).write_bytes(content)
        dist.barrier(group)
        refused(lambda: DistributedHashMap.load(path, group), *parts)
        refused(lambda: load_hash_map(path), *parts)
        dist.barrier(group)
        if table.rank == 0:
            (path / name).write_bytes(whole)

    flipped = bytearray(image)
    flipped[-5] ^= 1
    with_damage(victim.name, bytes(flipped), victim.name, "value column 0")
    flipped = bytearray(image)
    flipped[len(image) // 2 - 300] ^= 4
    with_damage(victim.name, bytes(flipped), victim.name, "damaged")
    flipped = bytearray(image)
    flipped[30] ^= 2
    with_damage(victim.name, bytes(flipped), victim.name, "header")
    with_damage(victim.name, image[:-1], victim.name, "truncated")
    with_damage(victim.name, b"", victim.name)
    with_damage(victim.name, None, victim.name, "missing")
    with_damage(victim.name, now[0].read_bytes(), victim.name, "another checkpoint")
    with_damage("checkpoint.json", manifest.replace(b"int32", b"int16"), "checkpoint.json")
    with_damage("checkpoint.json", b"{", "checkpoint.json")
    with_damage("checkpoint.json", b"[]", "checkpoint.json")
    with_damage("checkpoint.json", None, "checkpoint.json", "missing")
    dist.barrier(group)
    again = DistributedHashMap.load(path, group)
    same(again.get(keys), table.get(keys))
    # One rank cannot write: no rank's file stays, and the old checkpoint is intact.
    blocked = folder / "blocked"
    if table.rank == 0:
        blocked.write_bytes(b"not a folder")
    dist.barrier(group)
    refused(lambda: table.save(blocked), "blocked")


def check_a_save_to_different_folders_is_refused_and_the_old_checkpoint_stands(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", ())
    table.insert(np.arange(300), np.arange(300))
    shared, other = folder / "seen by all", folder / "seen by one"
    table.save(shared)
    dist.barrier(group)
    before = {file.name: file.read_bytes() for file in shared.iterdir()}
    dist.barrier(group)
    table.clear()
    last = table.world_size - 1
    error = refused(
        lambda: table.save(other if table.rank == last else shared),
        "path: expected a folder that all ranks see",
        "seen by all",
        f"rank {last} wrote",
    )
    assert isinstance(error, RuntimeError if table.rank else ValueError), error
    dist.barrier(group)
    assert {file.name: file.read_bytes() for file in shared.iterdir()} == before
    assert list(other.iterdir()) == []
    assert load_hash_map(shared).size() == 300


def check_entries_that_a_bounded_table_has_no_room_for_are_refused(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", ())
    table.insert(np.arange(100), np.arange(100))
    path = folder / "bounded"
    table.save(path)

    def bounded(most):
        into = tensorhash.BoundedHashMap(most, "int64", (), "int64", ())
        into.insert([5, 1000], [-5, -1000])
        return into

    small = bounded(100)  # of the checkpoint's keys, 99 are new to it and 2 exist
    refused(lambda: load_into(small, path), "table: ", "99 new keys", "max_capacity=100 and 2 keys")
    assert sorted(small.keys().tolist()) == [5, 1000]
    fits = bounded(101)
    load_into(fits, path)
    assert fits.get([5, 99, 1000]).tolist() == [-5, 99, -1000]

    class Secretive:
        def __init__(self, table):
            self.insert = table.insert

    refused(lambda: load_into(Secretive(bounded(60)), path), "table: ", "evicted")


def check_entries_that_one_shard_has_no_room_for_are_refused(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", ())
    table.insert(np.arange(0, 12, 2), np.arange(6))
    path = folder / "one shard"
    table.save(path)

    def bounded(most):
        cpus = ["cpu:0", "cpu:1"]
        into = tensorhash.ShardedBoundedHashMap(
            most, "int64", (), "int64", (), devices=cpus, policy="mod"
        )
        into.insert([4, 100], [-4, -100])
        return into

    # 10 of 12 places are free, but all five new keys are even, and that shard has only four left.
    small = bounded(12)
    before = pickle.dumps(small)  # including scores, uses and clock
    refused(
        lambda: load_into(small, path),
        "table: expected room on cpu:0 for 5 new keys",
        "share of 6 of max_capacity=12 and 2 keys",
    )
    assert pickle.dumps(small) == before
    fits = bounded(13)  # the first shard gets the larger share
    load_into(fits, path)
    assert fits.get([0, 4, 10, 100]).tolist() == [0, -4, 5, -100]


def across_group_sizes(groups, folder):
    """Loads a checkpoint onto 3, 1 and 2 ranks, a HashMap, and any table with `insert`."""
    four, three, two, one = groups[4], groups[3], groups[2], groups[1]
    keys = np.random.default_rng(1).normal(size=(5000, 3)).astype(np.float32)
    values = np.arange(5000)
    table = DistributedHashMap(four, 0, "float32", (3,), "int64", ())
    table.insert(keys[table.rank :: 4], values[table.rank :: 4])
    table.erase(keys[:100])
    table.save(folder / "four")
    whole = load_hash_map(folder / "four")
    whole.validate()
    same(whole.get(keys[100:]), values[100:])
    assert whole.size() == 4900
    rank = dist.get_rank()
    for group, source, target in (
        (three, "four", "three"),
        (one, "three", "one"),
        (two, "one", "two"),
    ):
        if rank < dist.get_world_size(group):
            moved = DistributedHashMap.load(folder / source, group)
            moved.validate()
            assert moved.size() == 4900
            same(moved.get(keys[100:]), values[100:])
            assert not moved.contains(keys[:100]).any()
            moved.save(folder / target)
        dist.barrier(four)
    into = tensorhash.HashMap(0, "float32", (3,), "int64", ())
    into.insert(keys[200:201], np.array([-1]))
    load_into(into, folder / "two")
    assert into.size() == 4900
    assert into.get(keys[199:202]).tolist() == [199, -1, 201]
    shards = tensorhash.ShardedHashMap(0, "float32", (3,), "int64", (), devices=["cpu:0", "cpu:1"])
    load_into(shards, folder / "four")
    assert shards.size() == 4900
    same(shards.get(keys[100:]), values[100:])
    refused(lambda: load_into(tensorhash.HashMap(0, "int32", (3,), "int64", ()), folder / "two"))
