"""Policies that are Python functions: their lifetime, their names, and files."""

import gc
import weakref

import numpy as np
import pytest

from tensorhash import BoundedHashMap, HashMap, HashSet, ShardedHashMap

DEVICES = ["cpu:0", "cpu:1"]


def make(policy):
    return ShardedHashMap(0, "int64", (), "float64", (), devices=DEVICES, policy=policy)


class Model:
    """Its method is the policy of its table: a reference cycle through the core."""

    def __init__(self):
        self.table = make(self.route)
        self.table.insert(np.arange(10), np.ones(10))

    def route(self, keys, shards):
        return keys % shards


def collected(make_one):
    """Whether 40 objects are freed once they are unreferenced."""
    made = [make_one() for _ in range(40)]
    alive = [weakref.ref(one) for one in made]
    gc.collect()
    assert all(ref() is not None for ref in alive)
    del made
    gc.collect()
    return all(ref() is None for ref in alive)


def with_copies():
    model = Model()
    model.others = [
        model.table.clone(),
        model.table.to(["cpu:1", "cpu:2"]),
        ShardedHashMap.from_items([1, 2], [1.0, 2.0], devices=DEVICES, policy=model.route),
    ]
    return model


@pytest.mark.parametrize("make_one", [Model, with_copies])
def test_a_table_with_a_policy_that_refers_to_its_owner_is_freed(make_one):
    assert collected(make_one)


def test_a_policy_outlives_its_owner_while_a_table_uses_it():
    model = Model()
    table, owner = model.table.clone(), weakref.ref(model)
    del model
    gc.collect()
    assert owner() is not None  # the clone's policy is its method
    assert table.shard_of([4, 5]).tolist() == [0, 1]
    table.validate()
    del table
    gc.collect()
    assert owner() is None


def test_a_finalizer_may_still_use_the_table():
    sizes = []

    class Last(Model):
        def __del__(self):
            self.table.insert([100, 101], [1.0, 1.0])
            sizes.append(len(self.table))

    Last()
    gc.collect()
    assert sizes == [12]


def named(name):
    def policy(keys, shards):
        return keys % shards

    class Callable:
        def __call__(self, keys, shards):
            return policy(keys, shards)

    one = Callable()
    one.__name__ = name
    return one


@pytest.mark.parametrize(
    "name",
    ["x" * 300, "ü" * 200, "x" + "€" * 200, "a\ud800b", "\ud800" * 300, 7, None, ""],
    ids=["long", "2 bytes", "3 bytes", "surrogate", "surrogates", "number", "none", "empty"],
)
def test_a_policy_of_any_name_is_saved_and_loaded(tmp_path, name):
    policy = named(name)
    table = make(policy)
    table.insert([1, 2, 3], [1.0, 2.0, 3.0])
    table.save(tmp_path / "t")
    again = ShardedHashMap.load(tmp_path / "t", policy=policy)
    assert again.find([1, 2, 3])[0].tolist() == table.find([1, 2, 3])[0].tolist()
    with pytest.raises(ValueError, match="policy: the table was saved with a custom policy"):
        ShardedHashMap.load(tmp_path / "t")


@pytest.mark.parametrize("reader", [HashMap, HashSet])
def test_a_file_of_another_kind_of_table_names_the_class_that_reads_it(tmp_path, reader):
    make("mod").save(tmp_path / "sharded")
    with pytest.raises(ValueError, match=r"sharded\.thash.* ShardedHashMap's load reads it"):
        reader.load(tmp_path / "sharded")
    BoundedHashMap(2, "int64", (), "float64", ()).save(tmp_path / "bounded")
    for cls in (reader, ShardedHashMap):
        with pytest.raises(ValueError, match=r"bounded\.thash.* BoundedHashMap's load reads it"):
            cls.load(tmp_path / "bounded")


def test_a_stream_event_resource_is_made_for_a_device_and_destroyed():
    table = make("mod")
    resource = table.stream_event_resource_create("cpu:1")
    assert resource.device_id == table.stream_event_resource_create(1).device_id == 1
    for _ in range(2):
        table.stream_event_resource_destroy(resource)
        assert resource.device_id == -1
    with pytest.raises(ValueError, match="device: expected one of cpu:0"):
        table.stream_event_resource_create(7)
    with pytest.raises(TypeError, match="device: expected one of cpu:0, cpu:1, got None"):
        table.stream_event_resource_create(None)
    with pytest.raises(TypeError, match="s_e_resource: .* got int"):
        table.stream_event_resource_destroy(3)
