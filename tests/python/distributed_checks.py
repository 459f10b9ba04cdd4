"""Checks run by the ranks of test_distributed.py, each on 2, 3 and 4 of four processes.

Batches come from seeds, so each rank knows the batches of all ranks and runs the oracle by itself.

Over 400 lines: torchrun starts one module, and its checks share the set-up of the ranks.
"""

import datetime
import functools
import json
import os
import pathlib
import sys
import traceback

import distributed_checkpoint_checks
import distributed_message_checks
import distributed_update_checks
import numpy as np
import torch
import torch.distributed as dist
from oracle import Oracle, canonical, refused, same

import tensorhash
from tensorhash.distributed import DistributedHashMap
from tensorhash.distributed.neighbours import Neighbours

GROUP_SIZES = (2, 3, 4)


class RanksOracle:
    """Rank by rank, row by row: one dictionary oracle per owning rank."""

    def __init__(self, table):
        self.table = table
        self.shards = [Oracle() for _ in range(table.world_size)]
        self.owners = {}

    def apply(self, verb, batches, *arguments):
        """This rank's result of a call in which each rank passes one of `batches`."""
        for rank, (keys, values) in enumerate(batches):
            result = self._one_rank(verb, keys, values, *arguments)
            if rank == self.table.rank:
                mine = result
        return mine

    def _one_rank(self, verb, keys, values, *arguments):
        places, mask = [], []
        for row, owner in enumerate(self.table.owner(keys).tolist()):
            assert self.owners.setdefault(canonical(keys[row]), owner) == owner
            one = [keys[row : row + 1]]
            if verb in ("insert", "insert_or_assign", "accumulate"):
                one.append(values[row : row + 1])
            if verb == "activate":
                one.append(np.zeros_like(values[0]))
            answer = getattr(self.shards[owner], verb)(*one, *arguments)
            if verb == "erase":
                mask.append(answer[0])
                continue
            index = int(answer[0][0])
            places.append(owner << 32 | index if index >= 0 else -1)
            mask.append(answer[1][0])
        if verb == "erase":
            return np.array(mask, dtype=bool)
        return np.array(places, dtype=np.int64), np.array(mask, dtype=bool)

    def get(self, keys, default):
        rows = []
        for row, owner in enumerate(self.table.owner(keys).tolist()):
            shard = self.shards[owner]
            place = shard.index.get(canonical(keys[row]))
            rows.append(default if place is None else shard.values[place])
        return np.array(rows, dtype=np.int64).reshape(len(keys), *np.shape(default))

    def size(self):
        return sum(len(shard.index) for shard in self.shards)


def batch(kind, seed, most=60):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(0, most)) if rng.random() < 0.85 else 0
    keys = KEYS[kind](rng, rows)
    return keys, rng.integers(-(2**62), 2**62, (rows, 2))


KEYS = {
    "int64": lambda rng, rows: rng.integers(0, 80, rows) << 32,
    "int32x3": lambda rng, rows: rng.integers(-2, 2, (rows, 3)).astype(np.int32),
    "uint8x5": lambda rng, rows: rng.integers(0, 3, (rows, 5)).astype(np.uint8),
    "float64": lambda rng, rows: rng.choice([0.0, -0.0, np.nan, -np.nan, 1.5, -7.0, np.inf], rows),
    "float32x2": lambda rng, rows: rng.choice([0, -0.0, np.nan, 2], (rows, 2)).astype(np.float32),
}
JOIN = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "first": lambda old, new: old,
    "last": lambda old, new: new,
}


def new_table(group, kind):
    keys = KEYS[kind](np.random.default_rng(0), 0)
    return DistributedHashMap(group, 0, keys.dtype, keys.shape[1:], "int64", (2,))


def check_random_programs_agree_with_the_oracle(group, folder):
    for kind in KEYS:
        table = new_table(group, kind)
        oracle = RanksOracle(table)
        largest = 0
        for step in range(25):
            rng = np.random.default_rng([step, len(kind)])
            verb = rng.choice(
                ["insert", "insert_or_assign", "accumulate", "activate", "find", "erase", "get"]
            )
            batches = [batch(kind, [step, rank]) for rank in range(table.world_size)]
            keys, values = batches[table.rank]
            if verb == "get":
                same(table.get(keys, default=[-5, 5]), oracle.get(keys, [-5, 5]))
                same(table.contains(keys), oracle.apply("find", batches)[1])
                continue
            arguments = (values,) if verb in ("insert", "insert_or_assign", "accumulate") else ()
            extra = ()
            if verb == "accumulate":
                word = rng.choice(list(JOIN))
                arguments, extra = (values, str(word)), (JOIN[word],)
            got = getattr(table, verb)(keys, *arguments)
            expected = oracle.apply(verb, batches, *extra)
            if verb == "erase":
                same(got, expected)
            else:
                same(got[0], expected[0])
                same(got[1], expected[1])
            assert table.size() == oracle.size()
            assert table.local_size() == len(oracle.shards[table.rank].index)
            largest = max(largest, table.size())
        table.validate()
        assert largest > 4
        table.clear()
        assert table.size() == 0


def check_big_batches_agree_with_one_table(group, folder):
    table = DistributedHashMap(group, 10, "int64", (), "int64", ())
    one = tensorhash.HashMap(0, "int64", (), "int64", ())
    for step in range(3):
        batches = []
        for rank in range(table.world_size):
            rng = np.random.default_rng([9, step, rank])
            batches.append(rng.integers(0, 150_000, 20_000 * (rank + 1)))
        for rank, keys in enumerate(batches):
            mask = one.accumulate(keys, keys + 1)[1]
            if rank == table.rank:
                expected = mask
        mine = batches[table.rank]
        where, new = table.accumulate(mine, mine + 1)
        same(new, expected)
        same(table.find(mine)[0], where)
        same(table.get(mine), one.get(mine))
        keys, values = table.items()
        same(one.get(keys), values)
        assert table.size() == one.size()
    table.validate()


def check_counts_any_and_all_agree_with_one_table(group, folder):
    columns = ["int32", "bool", "bool"]
    table = DistributedHashMap(group, 0, "int64", (), columns, [()] * 3)
    one = tensorhash.HashMap(0, "int64", (), columns, [()] * 3)
    for step, most in enumerate((40, 40, 10**6)):  # the last batch has few equal keys
        for rank in range(table.world_size):
            rng = np.random.default_rng([11, step, rank])
            keys, bits = rng.integers(0, most, 300), rng.random((2, 300)) < 0.03
            values = [np.full(300, 77, np.int32), bits[0], ~bits[1]]
            one.accumulate(keys, values, ["count", "any", "all"])
            if rank == table.rank:
                mine = keys, values
        table.accumulate(*mine, ["count", "any", "all"])
    for got, expected in zip(table.get(mine[0]), one.get(mine[0]), strict=True):
        same(got, expected)


def check_float_sums_are_close_and_the_same_every_time(group, folder):
    def run():
        table = DistributedHashMap(group, 0, "int32", (2,), "float32", (3,))
        one = tensorhash.HashMap(0, "int32", (2,), "float64", (3,))
        for rank in range(table.world_size):
            rng = np.random.default_rng([5, rank])
            keys = rng.integers(0, 9, (3000, 2)).astype(np.int32)
            values = rng.normal(size=(3000, 3)).astype(np.float32)
            one.accumulate(keys, values.astype(np.float64))
            if rank == table.rank:
                table.accumulate(keys, values)
                mine = keys
        return table.get(mine), one.get(mine)

    got, expected = run()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)
    same(run()[0], got)


def check_float_sums_have_the_bits_of_one_table_if_few_keys_are_equal(group, folder):
    table, one = (
        make("int64", (), "float32", ())
        for make in (
            functools.partial(DistributedHashMap, group, 0),
            functools.partial(tensorhash.HashMap, 0),
        )
    )
    for step in range(3):
        for rank in range(table.world_size):
            rng = np.random.default_rng([7, step, rank])
            keys, values = rng.integers(0, 9000, 3000), rng.normal(size=3000).astype(np.float32)
            one.accumulate(keys, values)
            if rank == table.rank:
                mine = keys, values
        table.accumulate(*mine)
    same(table.get(np.arange(9000)), one.get(np.arange(9000)))


def check_frameworks_and_columns(group, folder):
    rank = dist.get_rank(group)
    table = DistributedHashMap(
        group,
        100,
        torch.int64,
        (),
        value_dtypes=(torch.bfloat16, torch.uint8),
        value_element_shapes=((2,), ()),
    )
    keys = torch.arange(10) * 7 + rank
    halves = (keys.to(torch.float32) / 2).to(torch.bfloat16).repeat(2, 1).T
    where, new = table.insert(keys, [halves, keys.to(torch.uint8)])
    assert isinstance(where, torch.Tensor) and where.dtype == torch.int64
    assert new.dtype == torch.bool
    # Strided and list keys; one default per column; every rank looks up what rank 0 inserted.
    first, second = table.get((torch.arange(20) * 7)[::2], default=(-1, 9))
    assert first.dtype == torch.bfloat16 and first.shape == (10, 2)
    torch.testing.assert_close(first[:5, 1].float(), torch.arange(0, 70, 14) / 2)
    torch.testing.assert_close(first[5:].float(), torch.full((5, 2), -1.0))
    assert second.tolist() == [0, 14, 28, 42, 56] + [9] * 5
    assert table.contains([0, 7, 1000]).tolist() == [True, True, False]
    assert isinstance(table.keys(), torch.Tensor)
    table.save(folder / "columns")
    again = DistributedHashMap.load(folder / "columns", group)
    asked = torch.arange(100)
    for mine, theirs in zip(table.get(asked), again.get(asked), strict=True):
        assert theirs.dtype == mine.dtype and torch.equal(mine, theirs)
    reversed_keys = np.arange(0, 70, 7)[::-1].astype(">i8")
    found = table.find(reversed_keys)
    assert isinstance(found[0], np.ndarray) and found[1].all()
    bare = DistributedHashMap(group, 0, "uint8", (9,), value_dtypes=(), value_element_shapes=())
    assert bare.insert(np.ones((3, 9), np.uint8))[1].tolist() == [rank == 0, False, False]
    assert bare.size() == 1
    bare.validate()


def check_empty_batches(group, folder):
    table = DistributedHashMap(group, 0, "int32", (3,), "float32", (4,))
    none, no_values = np.empty((0, 3), np.int32), np.empty((0, 4), np.float32)
    for call in (table.insert, table.insert_or_assign, table.accumulate):
        where, mask = call(none, no_values)
        same(where, np.empty(0, np.int64))
        same(mask, np.empty(0, bool))
    same(table.activate(none)[0], np.empty(0, np.int64))
    same(table.find([])[0], np.empty(0, np.int64))
    same(table.contains(none), np.empty(0, bool))
    same(table.erase(none), np.empty(0, bool))
    same(table.get(none), no_values)
    assert table.size() == 0
    table.save(folder / "empty")
    assert DistributedHashMap.load(folder / "empty", group).size() == 0
    # Only one rank passes rows.
    only = np.arange(30, dtype=np.int32).reshape(10, 3)[: 10 * (table.rank == 1)]
    assert table.activate(only)[1].all()
    assert table.size() == 10
    same(table.get(np.ones((1, 3), np.int32)), np.zeros((1, 4), np.float32))


def check_an_error_on_one_rank_is_one_on_all_and_changes_nothing(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", (2,))
    keys = np.arange(50) * (table.rank + 1)
    values = np.zeros((50, 2), np.int64)
    table.insert(keys, np.stack([keys, keys], 1))
    before = [np.asarray(part).tobytes() for part in table.items()]
    refuse_wrong_arguments_of_one_rank(group, table, keys, values)
    refuse_calls_that_differ(group, table, keys, values)
    refuse_if_one_rank_has_no_memory(table)
    assert [np.asarray(part).tobytes() for part in table.items()] == before
    table.validate()
    assert table.find(keys)[1].all()


def both(rank, good, wrong, kind, *parts):
    """Rank 1 makes the wrong call and gets its error; the others get one that names rank 1."""
    bad = rank == 1
    error = refused(wrong if bad else good, *parts)
    assert isinstance(error, kind if bad else RuntimeError), error
    if not bad:
        assert "rank 1" in str(error)


def refuse_wrong_arguments_of_one_rank(group, table, keys, values):
    floats = keys.astype(np.float32)
    calls = [
        (lambda: table.find(keys), lambda: table.find(floats), TypeError, "keys", "float32"),
        (
            lambda: table.insert(keys, values),
            lambda: table.insert(keys, values[:49]),
            *(ValueError, "values"),
        ),
        (
            lambda: table.insert_or_assign(keys, values),
            lambda: table.insert_or_assign(keys),
            *(TypeError, "values"),
        ),
        (
            lambda: table.accumulate(keys, values),
            lambda: table.accumulate(keys, values, reduce="mean"),
            *(ValueError, "mean"),
        ),
        (
            lambda: table.get(keys),
            lambda: table.get(keys, default=[1, 2, 3]),
            *(ValueError, "default"),
        ),
        (lambda: table.erase(keys), lambda: table.erase(7), ValueError, "keys"),
        (lambda: table.reserve(10), lambda: table.reserve("ten"), TypeError, "capacity"),
        (
            lambda: DistributedHashMap(group, 0, "int32", (), "int64", ()),
            lambda: DistributedHashMap(group, 0, "complex64", (), "int64", ()),
            *(TypeError, "key_dtype"),
        ),
    ]
    for call in calls:
        both(table.rank, *call)


def refuse_calls_that_differ(group, table, keys, values):
    """Ranks must make the same calls with the same settings."""
    bad = table.rank == 1
    refused(lambda: table.size() if bad else table.find(keys), "same calls", "rank 1 size")
    refused(
        lambda: table.accumulate(keys, values, reduce="min" if bad else "max"),
        "same calls",
        "reduce=['min']",
    )
    refused(lambda: table.reserve(10 + bad), "same calls")
    table.reserve(np.int64(10) if bad else 10)  # an equal number is an equal call
    none = keys[:0], values[:0]
    table.accumulate(*none, reduce=np.str_("max") if bad else "max")
    refused(
        lambda: DistributedHashMap(group, 0, "int32" if bad else "int64", (), "int64", ()),
        "same calls",
        "key int32 ()",
    )


def refuse_if_one_rank_has_no_memory(table):
    """The error is planted, because real memory has no clear limit."""
    bad = table.rank == 1
    if bad:
        calls = table._calls
        room, calls._make_room = calls._make_room, functools.partial(fail, MemoryError("planted"))
    fresh = np.arange(1000, 2000)
    error = refused(lambda: table.insert(fresh, np.zeros((1000, 2), np.int64)), "planted")
    assert isinstance(error, MemoryError if bad else RuntimeError)
    if bad:
        calls._make_room = room


def fail(error, *_):
    raise error


def check_reserve_and_balance(group, folder):
    table = DistributedHashMap(group, 100_000, "int64", (), "int64", ())
    capacity = table.local.capacity()
    keys = np.arange(100_000) << 40
    table.insert(keys, keys)
    assert table.local.capacity() == capacity
    share = 100_000 / table.world_size
    assert abs(table.local_size() - share) < 5 * share**0.5
    same(table.owner(table.keys()), np.full(table.local_size(), table.rank))
    table.reserve(400_000)
    assert table.local.capacity() >= 400_000 / table.world_size
    before = table.find(keys)
    table.shrink_to_fit()
    assert table.local.capacity() == table.local_size()
    same(table.find(keys)[0], before[0])
    table.validate()
    assert repr(table).startswith(f"DistributedHashMap(rank {table.rank} of {table.world_size}")


def check_the_default_device_does_not_matter(group, folder):
    torch.set_default_device("meta")
    try:
        table = DistributedHashMap(group, 0, torch.int64, (), torch.int64, ())
        keys = torch.arange(50, device="cpu")
        assert table.insert(keys, keys * 2)[0].device.type == "cpu"
        assert torch.equal(table.get(keys), keys * 2)
        table.save(folder / "meta")
        assert DistributedHashMap.load(folder / "meta", group).size() == 50
        refused(lambda: table.find(keys if table.rank else keys.float()), "keys")
    finally:
        torch.set_default_device(None)


def check_ranks_on_one_machine_share_memory_and_give_it_back(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "float64", (200,))
    near = table._exchange._neighbours
    pairs = {2: 1, 3: 0, 4: 1}[table.world_size]
    assert (len(near.peers), near.are_all) == (pairs, pairs == table.world_size - 1)
    keys = np.arange(6000) * table.world_size + table.rank
    values = np.repeat(keys[:, None], 200, axis=1).astype(np.float64)
    for _ in range(2):
        table.insert_or_assign(keys, values)
        same(table.get(keys), values)
        tensorhash.release_memory()  # at once, while others may still read
        assert table.size() == 6000 * table.world_size
        assert near._block is None
    assert tensorhash.release_memory() >= 0


def check_some_found_keys_come_with_masks(group, folder):
    table = DistributedHashMap(group, 0, "int64", (), "int64", ())
    every = np.arange(4000)
    owner = table.owner(every)
    table.insert(every[(every % 3 == 0) & (owner != 1)], every[(every % 3 == 0) & (owner != 1)])
    for keys in (every, every[every % 3 == 0], every[owner == 1], np.repeat(every, 5)):
        there = (keys % 3 == 0) & (table.owner(keys) != 1)
        same(table.get(keys, -7), np.where(there, keys, -7))
        same(table.get(keys), np.where(there, keys, 0))


def check_a_group_of_another_kind_is_refused(group, folder):
    refused(lambda: DistributedHashMap("gloo", 0, "int64", (), "int64", ()), "process_group")


MODULES = (
    sys.modules[__name__],
    distributed_message_checks,
    distributed_update_checks,
    distributed_checkpoint_checks,
)
CHECKS = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if name.startswith("check_")
}


def keep_some_apart():
    """Two ranks share memory, three only send messages, and of four two and two share."""
    meet, connect = Neighbours.meet, Neighbours._open

    def meet_some(self, group, rank, ranks):
        self.allowed = {2: {0, 1}, 3: set(), 4: {rank, rank ^ 1}}[ranks]
        meet(self, group, rank, ranks)

    def open_some(self, peer, offer):
        return peer in self.allowed and connect(self, peer, offer)

    Neighbours.meet, Neighbours._open = meet_some, open_some


def main(folder):
    torch.set_num_threads(1)
    keep_some_apart()
    # If a check fails on one rank, the others wait: a short time, but more than a busy machine
    # needs.
    patience = datetime.timedelta(seconds=180)
    dist.init_process_group("gloo", timeout=patience)
    rank = dist.get_rank()
    groups = {
        size: dist.new_group(list(range(size)), timeout=patience) for size in (1, *GROUP_SIZES)
    }
    report = {}

    def run(name, action):
        try:
            action()
            report[name] = ""
        except Exception:
            report[name] = traceback.format_exc()
        dist.barrier()

    for size in GROUP_SIZES:
        place = folder / str(size)
        place.mkdir(exist_ok=True)
        for name, function in CHECKS.items():
            member = rank < size
            action = functools.partial(function, groups[size], place) if member else int
            run(f"{name}-{size}", action)
    run(
        "across_group_sizes",
        lambda: distributed_checkpoint_checks.across_group_sizes(groups, folder),
    )
    (folder / f"report-{rank}.json").write_text(json.dumps(report))
    # No destroy_process_group: on a loaded machine its barrier is slower than all checks.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
