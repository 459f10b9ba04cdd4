"""Optimizer steps on a sharded table: the bits of one table, and all or nothing."""

import os

import numpy as np
import pytest
from oracle import same

import tensorhash as th
from tensorhash import HashMap, ShardedHashMap

TYPE = os.environ.get("TENSORHASH_TEST_DEVICE", "cpu:0").partition(":")[0]
DEVICES = [f"{TYPE}:{shard}" for shard in range(3)]

OPTIMIZERS = [
    th.optim.SGD(lr=0.1, momentum=0.9),
    th.optim.Adagrad(lr=0.1),
    th.optim.RowWiseAdagrad(lr=0.1),
    th.optim.Adam(lr=0.01),
    th.optim.AdamW(lr=0.01),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("missing", ["skip", "insert"])
@pytest.mark.parametrize("duplicates", ["in_order", "sum"])
def test_update_gives_the_bits_of_one_table(optimizer, missing, duplicates):
    columns = optimizer._core().columns(("float32", (4,)))
    kinds = {
        "value_dtypes": [dtype for dtype, _ in columns],
        "value_element_shapes": [tuple(shape) for _, shape in columns],
    }
    one = HashMap(0, "int64", (), **kinds)
    many = ShardedHashMap(0, "int64", (), **kinds, devices=DEVICES)
    rng = np.random.default_rng(0)
    start = rng.integers(0, 500, 300)
    for table in (one, many):
        table.activate(start)
    initial = rng.normal(size=(6000, 4)).astype(np.float32) if missing == "insert" else None
    for _ in range(3):
        keys = rng.integers(0, 1000, 6000)
        gradients = rng.normal(size=(6000, 4)).astype(np.float32)
        how = {"missing": missing, "duplicates": duplicates, "initial": initial}
        index_one, found_one = one.update(keys, gradients, optimizer, **how)
        index_many, found_many = many.update(keys, gradients, optimizer, **how)
        same(found_many, found_one)
        same(index_many >= 0, index_one >= 0)
        for got, want in zip(many.get(keys), one.get(keys), strict=True):
            same(got, want)
    assert len(one) == len(many)


def test_update_of_missing_keys_can_be_an_error_that_changes_nothing():
    table = ShardedHashMap(0, "int64", (), "float32", (), devices=DEVICES)
    table.insert([1, 2], np.float32([1, 2]))
    before = table._table.to_bytes()
    with pytest.raises(KeyError, match="row 2"):
        table.update([1, 2, 3], np.ones(3, np.float32), th.optim.SGD(lr=1.0), missing="error")
    same(np.asarray(table._table.to_bytes()), np.asarray(before))
