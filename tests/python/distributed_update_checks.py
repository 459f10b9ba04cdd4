"""Checks of `update` for test_distributed.py: the bits of one table, or no change."""

import itertools

import numpy as np
import torch
from oracle import refused, same

import tensorhash
from tensorhash.distributed import DistributedHashMap


def pair_of_tables(group, optimizer, key_dtype="int64"):
    """The table, a HashMap to compare it with, and 40 keys in both."""
    columns = optimizer.columns("float32", (3,))
    table = DistributedHashMap(group, 0, key_dtype, (), **columns)
    one = tensorhash.HashMap(0, key_dtype, (), **columns)
    for each in (table, one):
        each.activate(np.arange(0, 80, 2).astype(key_dtype))
    return table, one


OPTIMIZERS = (
    tensorhash.optim.SGD(lr=0.1, momentum=0.9),
    tensorhash.optim.Adagrad(lr=0.1),
    tensorhash.optim.RowWiseAdagrad(lr=0.1),
    tensorhash.optim.Adam(lr=0.01, weight_decay=0.1),
    tensorhash.optim.AdamW(lr=0.01),
)
STARTS = {
    "none": lambda rng, rows: None,
    "number": lambda rng, rows: 0.5,
    "row": lambda rng, rows: [0.5, -1.0, 2.0],
    "rows": lambda rng, rows: rng.normal(size=(rows, 3)).astype(np.float32),
}


def check_update_gives_the_bits_of_one_table(group, folder):
    ways = [("skip", "none"), *(("insert", start) for start in STARTS)]
    program = itertools.product(ways, ("in_order", "sum"))
    for number, ((missing, start), duplicates) in enumerate(program):
        optimizer = OPTIMIZERS[number % len(OPTIMIZERS)]
        key_dtype = "float64" if start == "rows" else "int64"
        table, one = pair_of_tables(group, optimizer, key_dtype)
        how = {"missing": missing, "duplicates": duplicates}
        for step in range(2):
            compare_update(table, one, optimizer, how, key_dtype, STARTS[start], [number, step])
        table.validate()
        assert table.size() == one.size()


def compare_update(table, one, optimizer, how, key_dtype, start, seed):
    """One update of `table`, compared with one update of `one` with the rows of all ranks."""
    batches = []
    for rank in range(table.world_size):
        rng = np.random.default_rng([*seed, rank])
        rows = 0 if rank == 1 and seed[-1] == 1 else 70 + rank
        keys = rng.integers(0, 90, rows).astype(key_dtype)
        if key_dtype == "float64":
            keys[keys == 0] *= rng.choice([1.0, -1.0])
        gradients = rng.normal(size=(rows, 3)).astype(np.float32)
        batches.append((keys, gradients, start(rng, rows)))
    keys, gradients, starts = zip(*batches, strict=True)
    per_row = isinstance(starts[0], np.ndarray)
    together = np.concatenate(starts) if per_row else starts[0]
    index, found = one.update(
        np.concatenate(keys), np.concatenate(gradients), optimizer, initial=together, **how
    )
    begin = sum(map(len, keys[: table.rank]))
    mine = slice(begin, begin + len(keys[table.rank]))
    bring = torch.from_numpy if seed[-1] else np.asfortranarray
    places, there = table.update(
        bring(keys[table.rank]),
        bring(gradients[table.rank]),
        optimizer,
        initial=starts[table.rank],
        **how,
    )
    same(np.asarray(there), found[mine])
    same(np.asarray(places) >= 0, index[mine] >= 0)
    at = table.find(keys[table.rank])[0]
    same(np.asarray(places), at)
    for got, expected in zip(table.get(keys[0]), one.get(keys[0]), strict=True):
        same(got, expected)


def check_an_update_that_is_refused_changes_nothing(group, folder):
    adam = tensorhash.optim.Adam(lr=0.1)
    table, _ = pair_of_tables(group, adam)
    bad = table.rank == 1
    keys = np.arange(0, 20, 2)
    ones = np.ones((10, 3), np.float32)
    before = [part.tobytes() for part in (table.keys(), *table.items()[1])]

    def refuse(kind, *parts, at=keys, steps=ones, by=adam, **how):
        error = refused(lambda: table.update(at, steps, by, **how), *parts)
        assert isinstance(error, kind if bad else RuntimeError), error

    # Only rank 1 has absent keys.
    absent = np.where(np.arange(10) > 7, 1001, keys) if bad else keys
    refuse(KeyError, "2 rows", "the first is row 8", at=absent, missing="error")
    refuse(ValueError, "gradients", steps=ones[: 10 - bad])
    refuse(TypeError, "gradients", steps=ones.astype(np.float64) if bad else ones)
    refuse(ValueError, "missing", missing="add" if bad else "skip")
    refuse(ValueError, "duplicates", duplicates="mean" if bad else "sum")
    refuse(ValueError, "initial", initial=1.0 if bad else None)
    refuse(TypeError, "optimizer", by="adam" if bad else adam)
    # Calls that do not match between ranks.
    slower = tensorhash.optim.Adam(lr=0.01) if bad else adam
    refuse(RuntimeError, "same calls", "Adam(0.01", by=slower)
    refuse(RuntimeError, "same calls", missing="error" if bad else "skip")
    refuse(RuntimeError, "same calls", missing="insert", initial=1.0 if bad else None)
    # Columns that do not match the optimizer, which all ranks notice.
    thin = DistributedHashMap(group, 0, "int64", (), "float32", (3,))
    thin.activate(keys)
    refused(lambda: thin.update(keys, ones, adam, missing="insert"), "optimizer", "column")
    assert thin.size() == 10 and not thin.get(keys).any()
    bare = DistributedHashMap(group, 0, "int64", (), value_dtypes=(), value_element_shapes=())
    refused(lambda: bare.update(keys, keys, tensorhash.optim.SGD()), "optimizer")
    assert [part.tobytes() for part in (table.keys(), *table.items()[1])] == before
    # Equal settings, written differently, and no absent keys.
    same_rate = tensorhash.optim.Adam(lr=np.float64(0.1)) if bad else adam
    assert table.update(keys, ones, same_rate, missing="error")[1].all()
    table.validate()
