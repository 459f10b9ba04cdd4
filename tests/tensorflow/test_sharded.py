"""One table over several devices: all operations, TensorFlow's ops, checkpoints, SavedModels."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from conftest import Oracle, random_array

import tensorhash
import tensorhash.tensorflow as thtf

raw = tf.raw_ops
DEVICES = [["cpu:0"], ["cpu:0", "cpu:1"], ["cpu:3", "cpu:0", "cpu:1"]]
Refused = tf.errors.InvalidArgumentError


def make_table(devices=("cpu:0", "cpu:1"), **kwargs):
    return thtf.HashTable(tf.int64, tf.float32, [-1.0, -2.0], devices=list(devices), **kwargs)


def filled(**kwargs):
    table = make_table(**kwargs)
    keys = tf.range(-50, 50, dtype=tf.int64)
    table.insert(keys, tf.stack([tf.range(100.0), -tf.range(100.0)], 1))
    return table


def contents(table):
    keys, values = table.export()
    return dict(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True))


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("policy", ["hash", "mod"])
@pytest.mark.parametrize("own", [True, False])
def test_a_table_agrees_with_a_dict(devices, policy, own, rng):
    """With our ops, and with TensorFlow's six ops for lookup tables."""
    table = make_table(devices, policy=policy)
    handle = table.resource_handle
    default = np.array([-1, -2], np.float32)
    oracle = Oracle((), default)
    for _ in range(6):
        keys = random_array(rng, tf.int64, (200,), span=300)
        values = random_array(rng, tf.float32, (200, 2))
        gone = random_array(rng, tf.int64, (30,), span=300)
        asked = random_array(rng, tf.int64, (9, 11), span=300)
        if own:
            table.insert(keys, values)
            table.remove(gone)
            got, exists = table.lookup(asked, return_exists=True)
            size = table.size()
        else:
            raw.LookupTableInsertV2(table_handle=handle, keys=keys, values=values)
            raw.LookupTableRemoveV2(table_handle=handle, keys=gone)
            got = raw.LookupTableFindV2(table_handle=handle, keys=asked, default_value=default)
            size = raw.LookupTableSizeV2(table_handle=handle)
        oracle.insert(keys, values)
        oracle.remove(gone)
        want, there = oracle.lookup(asked)
        assert np.array_equal(got, want)
        assert int(size) == len(oracle.items)
        if own:
            assert np.array_equal(exists, there)
    keys, values = raw.LookupTableExportV2(table_handle=handle, Tkeys=tf.int64, Tvalues=tf.float32)
    other = make_table(["cpu:0", "cpu:5"])
    raw.LookupTableImportV2(table_handle=other.resource_handle, keys=keys, values=values)
    assert contents(other) == contents(table)
    assert len(contents(table)) == len(oracle.items)


@pytest.mark.parametrize("devices", DEVICES)
def test_set_overwrites_existing_keys_and_adds_none(devices):
    table = filled(devices=devices)
    before = contents(table)
    exists = table.set([[7, 1000], [-50, 7]], [[[1.0, 1.0]] * 2, [[2.0, 2.0], [3.0, 3.0]]])
    assert exists.numpy().tolist() == [[True, False], [True, True]]
    assert contents(table) == {**before, 7: [3, 3], -50: [2, 2]}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("duplicates", ["in_order", "sum"])
def test_update_gives_the_bits_of_one_table(devices, duplicates, rng):
    sgd = tensorhash.optim.SGD(lr=0.1, weight_decay=0.01)
    table = filled(devices=devices)
    keys, values = table.export()
    plain = tensorhash.HashMap.from_items(keys.numpy(), values.numpy())
    ids = rng.integers(-60, 60, 500)
    slopes = rng.normal(size=(500, 2)).astype(np.float32)
    exists = table.update(ids, slopes, sgd, duplicates=duplicates)
    _, found = plain.update(ids, slopes, sgd, duplicates=duplicates)
    assert np.array_equal(exists, found)
    assert np.array_equal(table.get(ids), plain.get(ids, default=np.array([-1, -2], np.float32)))


def test_optimizers_with_state_are_refused():
    table = filled()
    for optimizer in (tensorhash.optim.SGD(momentum=0.9), tensorhash.optim.Adam(), "sgd"):
        with pytest.raises(Refused, match="optimizer: expected tensorhash.optim.SGD without"):
            table.update([1], [[1.0, 1.0]], optimizer)


@pytest.mark.parametrize("devices", DEVICES)
def test_sizes_and_dumps_go_device_by_device(devices):
    table = filled(devices=devices, policy="mod")
    everything = {}
    for shard, device in enumerate(devices):
        keys, values = table.dump_to_cpu(device)
        assert all(key % len(devices) == shard for key in keys.numpy().tolist())
        assert int(table.get_size(device)) == len(keys)
        everything.update(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True))
    assert everything == contents(table)
    assert int(table.get_size()) == 100
    assert [len(part) for part in table.dump_to_cpu()] == [100, 100]
    batches = [keys for keys, _ in table.export_batches(7)]
    assert np.array_equal(tf.concat(batches, 0), table.export()[0])
    table.clear()
    assert int(table.get_size()) == 0
    table.reserve(1000)


def test_insert_from_cpu_takes_the_keys_of_one_device():
    table = filled(policy="mod")
    table.insert_from_cpu("cpu:1", [1, 101], [[5.0, 5.0], [6.0, 6.0]])
    assert table.get([1, 101]).numpy().tolist() == [[5, 5], [6, 6]]
    before = contents(table)
    with pytest.raises(Refused, match="keys: row 1 belongs to cpu:0, not to shard 1"):
        table.insert_from_cpu("cpu:1", [3, 2], [[9.0, 9.0]] * 2)
    with pytest.raises(Refused, match="device: expected one of cpu:0, cpu:1, got 'cpu:2'"):
        table.insert_from_cpu("cpu:2", [3], [[9.0, 9.0]])
    assert contents(table) == before


def test_impossible_calls_are_refused_with_a_message():
    with pytest.raises(tf.errors.FailedPreconditionError, match="dump_to_gpu: expected a table on"):
        filled().dump_to_gpu("cpu:0")
    with pytest.raises(Refused, match="policy: expected .* an op cannot call a Python function"):
        make_table(policy=lambda keys, shards: keys % shards)
    with pytest.raises(Refused, match="mod"):
        make_table(policy="modulo")
    with pytest.raises(Refused, match="twice"):
        make_table(["cpu:0", "cpu:0"])
    with pytest.raises(Refused, match="cuda"):
        make_table(["cpu:0", "cuda:0"])
    with pytest.raises(Refused, match="devices: expected a list"):
        thtf.HashTable(tf.int64, tf.float32, 0.0, devices="cpu:0")
    with pytest.raises(Refused, match="devices: expected none, or cpu:0, for string keys"):
        thtf.HashTable(tf.string, tf.float32, 0.0, devices=["cpu:0", "cpu:1"])
    with pytest.raises(Refused, match="shard: expected 0 to 1, got 2"):
        thtf.ops.tensorhash_shard_size(filled().resource_handle, 2)


def test_string_keys_have_the_same_operations():
    table = thtf.HashTable(tf.string, tf.float32, [0.0, 0.0])
    table.insert(["a", "b"], [[1.0, 2.0], [3.0, 4.0]])
    assert table.set(["b", "c", "b"], [[5.0, 5.0], [6.0, 6.0], [7.0, 7.0]]).numpy().tolist() == [
        True, False, True,
    ]  # fmt: skip
    sgd = tensorhash.optim.SGD(lr=0.5)
    assert table.update(["a", "c"], tf.ones((2, 2)), sgd).numpy().tolist() == [True, False]
    assert table.get(["a", "b", "c"]).numpy().tolist() == [[0.5, 1.5], [7, 7], [0, 0]]
    table.insert_from_cpu("cpu:0", ["d"], [[8.0, 8.0]])
    assert int(table.get_size("cpu:0")) == int(table.get_size()) == 3
    keys, values = table.dump_to_cpu("cpu:0")
    assert sorted(keys.numpy().tolist()) == [b"a", b"b", b"d"]
    assert values.shape == (3, 2)


def test_a_shared_name_has_one_placement():
    table = filled(shared_name="placed")
    same = make_table(shared_name="placed")
    assert contents(same) == contents(table)
    with pytest.raises(Refused, match='"placed" is another table.*cpu:0, cpu:1 by "hash"'):
        make_table(["cpu:0"], shared_name="placed")
    with pytest.raises(Refused, match='"placed" is another table'):
        make_table(policy="mod", shared_name="placed")


@pytest.mark.parametrize("devices", DEVICES)
def test_checkpoints_restore_onto_other_devices(devices, tmp_path):
    table = filled()
    file = tf.train.Checkpoint(table=table).save(tmp_path / "checkpoint")
    other = make_table(devices, policy="mod")
    tf.train.Checkpoint(table=other).restore(file).assert_consumed()
    assert contents(other) == contents(table)
    assert int(other.get_size(devices[0])) == len(other.dump_to_cpu(devices[0])[0])


class Served(tf.Module):
    def __init__(self):
        self.table = filled(devices=["cpu:0", "cpu:1", "cpu:2"], policy="mod")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def look(self, keys):
        return self.table.lookup(keys)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 2])])
    def change(self, keys, values):
        self.table.set(keys, values)
        self.table.update(keys, values, tensorhash.optim.SGD(lr=1.0))
        return self.table.get_size("cpu:1"), self.table.dump_to_cpu("cpu:1")[0]


def test_a_saved_model_holds_it_in_a_new_process(tmp_path):
    module = Served()
    tf.saved_model.save(module, tmp_path / "model")
    program = (
        "import sys, tensorflow as tf, tensorhash.tensorflow\n"
        "model = tf.saved_model.load(sys.argv[1])\n"
        "keys = tf.constant([-50, 49, 50], tf.int64)\n"
        "print(model.look(keys).numpy().tolist())\n"
        "size, dumped = model.change(keys, tf.ones((3, 2)))\n"
        "print(int(size), len(dumped), sorted(set((dumped % 3).numpy().tolist())))\n"
        "print(model.look(keys).numpy().tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "model")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, sizes, second = done.stdout.splitlines()
    assert first == "[[0.0, -0.0], [99.0, -99.0], [-1.0, -2.0]]"
    assert (
        sizes == f"{int(module.table.get_size('cpu:1'))} {int(module.table.get_size('cpu:1'))} [1]"
    )
    assert second == "[[0.0, 0.0], [0.0, 0.0], [-1.0, -2.0]]"


def test_vector_keys_over_devices(rng):
    table = thtf.HashTable(
        tf.int32, tf.int64, -1, key_shape=(3,), devices=["cpu:0", "cpu:1"], capacity=100
    )
    keys = rng.integers(-4, 4, (500, 3)).astype(np.int32)
    table.insert(keys, np.arange(500))
    last = {tuple(key): row for row, key in enumerate(keys.tolist())}
    assert table[keys].numpy().tolist() == [last[tuple(key)] for key in keys.tolist()]
    assert int(table.get_size("cpu:0")) + int(table.get_size("cpu:1")) == len(last)
    with pytest.raises(Refused, match="mod"):
        thtf.HashTable(tf.int32, tf.int64, -1, key_shape=(3,), devices=["cpu:0"], policy="mod")


@pytest.mark.parametrize("devices", [["cuda:0"], ["cpu:0", "cuda:1"]])
def test_a_table_on_a_gpu_says_what_is_missing(devices):
    """One of the three sentences of docs/devices.md; nothing falls back to the CPU."""
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"devices: (CUDA needs the package|tensorhash-cu13 is installed, but|expected \"cuda)",
    ):
        thtf.HashTable(tf.int64, tf.float32, 0.0, devices=devices)
