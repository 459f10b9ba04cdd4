"""ShardedHashMap against one HashMap and against one oracle per shard.

Over 400 lines: all tests share the oracle of the shards.
"""

import copy
import os
import pickle
import threading

import numpy as np
import pytest
from oracle import Oracle, canonical, same, same_pair

import tensorhash as th
from tensorhash import HashMap, ShardedHashMap

# tools/test-device runs this file on emulated devices.
TYPE = os.environ.get("TENSORHASH_TEST_DEVICE", "cpu:0").partition(":")[0]
ON_CPU = TYPE == "cpu"
DEVICES = [f"{TYPE}:{shard}" for shard in range(3)]
cpu_only = pytest.mark.skipif(not ON_CPU, reason="for tables on the CPU")


def by_tens(keys, shards):
    """A user-defined policy."""
    return np.abs(keys.reshape(len(keys), -1)[:, 0].astype(np.int64)) // 10 % shards


POLICIES = ["hash", "mod", *([by_tens] if ON_CPU else [])]


def make(policy="hash", devices=DEVICES, key=("int64", ()), value=("float64", ())):
    return ShardedHashMap(0, *key, *value, devices=devices, policy=policy)


class Shards:
    """One Oracle per shard; rows go there one by one."""

    def __init__(self, table):
        self.table = table
        self.parts = [Oracle() for _ in table.devices]

    def rows(self, verb, keys, *values):
        shards = np.asarray(self.table.shard_of(keys))
        indices, mask = [], []
        for row, shard in enumerate(shards):
            columns = [value[row : row + 1] for value in values]
            found = getattr(self.parts[shard], verb)(keys[row : row + 1], *columns)
            index, new = found if isinstance(found, tuple) else ([-1], found)
            indices.append(-1 if index[0] < 0 else int(shard) << 32 | int(index[0]))
            mask.append(new[0])
        return np.array(indices, np.int64), np.array(mask, bool)

    def check(self):
        table = self.table
        live = [(s << 32 | i) for s, part in enumerate(self.parts) for i in part.live().tolist()]
        same(table.active_buf_indices(), np.array(live, np.int64))
        where = [(part, i) for part in self.parts for i in part.live().tolist()]
        np.testing.assert_array_equal(table.keys(), np.array([p.keys[i] for p, i in where]))
        keys, values = table.items()
        np.testing.assert_array_equal(keys, table.keys())
        np.testing.assert_array_equal(values, np.array([p.values[i] for p, i in where]))
        assert len(table) == len(live)
        table.validate()


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_program_agrees_with_an_oracle_for_each_shard(policy, threads):
    th.set_num_threads(threads)
    table = make(policy)
    oracle = Shards(table)
    rng = np.random.default_rng(3)
    for step in range(12):
        keys = rng.integers(-300, 300, 700 if step % 3 else 6000)
        values = rng.normal(size=len(keys))
        same_pair(table.insert(keys, values), oracle.rows("insert", keys, values))
        some = keys[::3]
        same_pair(
            table.insert_or_assign(some, values[::3]),
            oracle.rows("insert_or_assign", some, values[::3]),
        )
        same_pair(table.find(keys + 5), oracle.rows("find", keys + 5))
        same(table.erase(keys[:50]), oracle.rows("erase", keys[:50])[1])
    oracle.check()


def test_results_are_those_of_one_table_except_for_indices():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2000, (20000, 3)).astype(np.int32) // 200
    values = rng.normal(size=(len(keys), 2)).astype(np.float32)
    one = HashMap(0, "int32", (3,), "float32", (2,))
    many = make(key=("int32", (3,)), value=("float32", (2,)))
    for verb in ("insert", "accumulate", "insert_or_assign", "accumulate"):
        mask_one = getattr(one, verb)(keys, values)[1]
        mask_many = getattr(many, verb)(keys, values)[1]
        same(mask_many, mask_one)
        same(many.get(keys), one.get(keys))
    same(many.contains(keys - 1), one.contains(keys - 1))
    same(many.get(keys - 1, default=7), one.get(keys - 1, default=7))
    same(many.get(keys - 1, default=values), one.get(keys - 1, default=values))
    assert len(many) == len(one)


def test_every_reduction_is_that_of_one_table():
    rng = np.random.default_rng(5)
    columns = (("int64", "bool", "bool", "int32", "float64"), ((),) * 5)
    one = HashMap(0, "int64", (), *columns)
    many = ShardedHashMap(0, "int64", (), *columns, devices=DEVICES)
    for words in (("prod", "any", "all", "count", "sum"), ("min", "last", "first", "max", "prod")):
        keys, bits = rng.integers(0, 300, 4000), rng.random(4000) < 0.5
        values = [keys | 1, bits, bits, np.int32(keys), rng.random(4000) + 0.5]
        same(many.accumulate(keys, values, words)[1], one.accumulate(keys, values, words)[1])
        for got, want in zip(many.get(keys), one.get(keys), strict=True):
            same(got, want)


def test_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 3000, 30000)
    values = rng.normal(size=len(keys))
    images = []
    for threads in (1, 2, 8):
        th.set_num_threads(threads)
        table = make()
        first = table.accumulate(keys, values)
        erased = table.erase(keys[:5000])
        second = table.accumulate(keys[::-1], values)
        images.append([x.tobytes() for x in (*first, erased, *second, *table.items())])
    assert images[0] == images[1] == images[2]


def test_the_operations_of_a_multi_device_table():
    table = make("mod")
    table.insert([3, 4, 5, -1], [0.5, 1.5, 2.5, 3.5])
    same(table.set([4, 9, 4], [10.0, 20.0, 30.0]), np.array([True, False, True]))
    same(table.get([4, 9], default=-1), np.array([30.0, -1.0]))
    assert table.get_size() == 4
    assert [table.get_size(device) for device in DEVICES] == [1, 1, 2]
    assert table.get_size(2) == 2  # a device by its number
    keys, values = table.dump_to_cpu(DEVICES[2])
    same(keys, np.array([5, -1]))
    same(values, np.array([2.5, 3.5]))
    on_device = table.dump_to_gpu()[0]
    same(on_device if ON_CPU else np.asarray(on_device.cpu()), table.keys())
    same(table.remove([5, 77]), np.array([True, False]))
    same(table.shard_of([-1, -2, -3]), np.array([2, 1, 0], np.int32))

    indices, added = table.insert_from_cpu(DEVICES[1], [7, 10, 7], [1.0, 2.0, 3.0])
    same(added, np.array([True, True, False]))
    assert (indices >> 32 == 1).all()
    with pytest.raises(ValueError, match=f"keys: row 1 belongs to {TYPE}:2, not to {TYPE}:1"):
        table.insert_from_cpu(DEVICES[1], [13, 8], [1.0, 2.0])
    assert 13 not in table
    table.insert_from_cpu(None, [13, 8], [1.0, 2.0])
    assert 13 in table and 8 in table
    found = table.find(table.keys())
    table.shrink_to_fit()
    table.validate()
    assert table.size() <= table.capacity() < 20
    for before, after in zip(found, table.find(table.keys()), strict=True):
        np.testing.assert_array_equal(before, after)
    table.clear()
    assert table.get_size() == 0


@cpu_only
def test_buffers_are_one_per_device():
    table = make("mod")
    indices, _ = table.insert([3, 4], [0.5, 1.5])
    shard, local = indices >> 32, indices & 0xFFFFFFFF
    for row in range(2):
        device = table.devices[shard[row]]
        assert table.key_tensor(device)[local[row]] == [3, 4][row]
        assert table.value_tensor(device=device)[local[row]] == [0.5, 1.5][row]
    with pytest.raises(ValueError, match="device: expected one of cpu:0, cpu:1, cpu:2"):
        table.value_tensor()
    with pytest.raises(IndexError, match="value_buffer_id"):
        table.value_tensor(1, "cpu:0")
    assert not table.key_tensor("cpu:0").flags.writeable
    alone = make(devices=["cpu:4"])
    alone.insert([3], [0.5])
    assert alone.value_tensor()[0] == 0.5
    table.erase([3])
    moved = table.compact()
    assert [len(m) for m in moved] == [len(table.key_tensor(d)) for d in table.devices]


@cpu_only
def test_equal_float_keys_have_one_shard_under_any_policy():
    def by_bits(keys, shards):
        return keys.view(np.int64) % shards

    keys = np.array([0.0, -0.0, np.nan, -np.nan, 1.5])
    for policy in ("hash", by_bits):
        table = make(policy, key=("float64", ()))
        _, added = table.insert(keys, np.arange(5.0))
        same(added, np.array([True, False, True, False, True]))
        assert len({canonical(key) for key in keys}) == len(table)


def test_mod_and_its_strides():
    keys = np.arange(0, 30000, 3)
    assert make("mod").insert(keys, keys.astype(float))[1].all()
    skewed, even = make("mod"), make("hash")
    for table in (skewed, even):
        table.insert(keys, keys.astype(float))
    assert [skewed.get_size(d) for d in DEVICES] == [10000, 0, 0]
    assert all(3000 < even.get_size(d) < 3700 for d in DEVICES)


@pytest.mark.parametrize("policy", POLICIES)
def test_files_load_onto_any_number_of_shards(tmp_path, policy):
    table = make(policy)
    keys = np.arange(-500, 1500)
    table.insert(keys, keys * 0.5)
    table.erase(keys[::7])
    table.save(tmp_path / "t")
    again = None if isinstance(policy, str) else policy
    same_table = ShardedHashMap.load(tmp_path / "t", None if ON_CPU else DEVICES, again)
    same_pair(same_table.find(keys), table.find(keys))
    assert same_table.devices == table.devices
    for count in (1, 2, 5):
        for other in POLICIES:
            devices = [f"{TYPE}:{i}" for i in range(count)]
            moved = ShardedHashMap.load(tmp_path / "t.thash", devices, other)
            moved.validate()
            assert moved.devices == tuple(devices)
            same(moved.get(keys, default=-1), table.get(keys, default=-1))
            assert len(moved) == len(table)
    if again is not None:
        with pytest.raises(ValueError, match=r'policy: .*"by_tens\(\)"'):
            ShardedHashMap.load(tmp_path / "t")
    with pytest.raises(ValueError, match=r"file_name: expected a .thash file"):
        table.save(tmp_path / "t.npz")
    single = HashMap.from_items(keys, keys * 0.5)
    single.save(tmp_path / "one")
    same(ShardedHashMap.load(tmp_path / "one", DEVICES).get(keys), keys * 0.5)
    (tmp_path / "bad.thash").write_bytes((tmp_path / "t.thash").read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"bad.thash"):
        ShardedHashMap.load(tmp_path / "bad.thash", policy=again)


def test_copies_and_pickles():
    for policy in POLICIES:
        table = make(policy)
        table.insert(np.arange(100), np.arange(100.0))
        table.erase(np.arange(0, 50, 3))
        for twin in (
            table.clone(),
            copy.copy(table),
            copy.deepcopy(table),
            pickle.loads(pickle.dumps(table, 2)),
            pickle.loads(pickle.dumps(table, 5)),
        ):
            same_pair(twin.find(np.arange(100)), table.find(np.arange(100)))
            assert twin.policy == policy and twin.devices == table.devices
            twin.clear()
        assert len(table) == 83
    there = make("mod").to(["cpu:1", "cpu:3"])
    assert there.devices == ("cpu:1", "cpu:3") and there.policy == "mod"
    assert there.to(["cpu:1", "cpu:3"]) is there
    assert there.is_cpu and not there.is_cuda and there.cpu() is there
    assert "cpu:1, cpu:3" in repr(there)


@cpu_only
def test_an_integer_names_a_shard_on_the_cpu_where_there_is_no_gpu():
    table = make(devices=[2, np.int64(0)])
    assert table.devices == ("cpu:2", "cpu:0") and "cpu:2, cpu:0" in repr(table)
    assert table.to([1]).devices == ("cpu:1",)


def test_from_items_and_several_columns():
    keys = np.array([[1, 2], [3, 4], [1, 2]], np.int16)
    columns = (np.array([1, 2, 3], np.uint8), np.ones((3, 2), np.float32))
    table = ShardedHashMap.from_items(keys, columns, devices=DEVICES)
    assert len(table) == 2
    first, second = table.get(keys)
    same(first, np.array([1, 2, 1], np.uint8))
    same(second, np.ones((3, 2), np.float32))
    other = ShardedHashMap(
        0,
        "int16",
        (2,),
        value_dtypes=("uint8", "float32"),
        value_element_shapes=((), (2,)),
        devices=DEVICES,
    )
    other.insert(keys, columns)
    same(other.get(keys)[0], first)


def test_strided_swapped_and_empty_batches():
    table = make()
    keys = np.arange(40)[::-3]
    table.insert(keys, np.ones(80)[: len(keys) * 2 : 2])
    assert table.contains(keys.astype(">i8")).all()
    nothing = np.empty(0, np.int64)
    indices, added = table.insert(nothing, np.empty(0))
    assert indices.dtype == np.int64 and indices.shape == added.shape == (0,)
    assert table.get([]).shape == (0,)
    assert make().items()[0].shape == (0,)


@cpu_only
def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    table = ShardedHashMap(0, torch.int64, (), torch.float32, (2,), devices=DEVICES)
    keys = torch.arange(50)
    indices, added = table.insert(keys, torch.ones(50, 2))
    assert indices.dtype == torch.int64 and bool(added.all())
    assert torch.equal(table.get(keys), torch.ones(50, 2))
    assert isinstance(table.keys(), torch.Tensor)
    assert isinstance(table.insert(np.arange(3), np.ones((3, 2), np.float32))[0], np.ndarray)
    assert make(devices=[torch.device("cpu"), "CPU:1"]).devices == ("cpu:0", "cpu:1")


def test_a_concurrent_reader_sees_whole_batches():
    table = make()
    keys = np.arange(5000)
    table.insert(keys, np.zeros(5000))
    torn = []
    stop = threading.Event()

    def read():
        while not stop.is_set():
            values = table.get(keys)
            torn.append(values.min() != values.max())

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step in range(1, 40):
        table.set(keys, np.full(5000, float(step)))
    stop.set()
    for reader in readers:
        reader.join()
    assert torn and not any(torn)


@cpu_only
def test_a_policy_runs_from_many_threads_and_may_use_the_table():
    table = None

    def policy(keys, shards):
        if table is not None:
            len(table)
        return keys % shards

    table = make(policy)
    threads = [
        threading.Thread(target=lambda n=n: table.insert(np.arange(n, 4000, 4), np.ones(1000)))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(table) == 4000
    table.validate()


def bad_policy(keys, shards):
    raise RuntimeError("no idea")


@cpu_only
@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: make(devices=[]), ValueError, "devices: expected at least one"),
        (lambda: make(devices="cpu:0"), TypeError, "devices: expected a list"),
        (lambda: make(devices=["cpu:1", "cpu:1"]), ValueError, 'devices: .*"cpu:1" twice'),
        (lambda: make(devices=["cpu:64"]), ValueError, 'devices: .*"cpu:64"'),
        (lambda: make(devices=["cuda:0"]), RuntimeError, "devices: CUDA needs"),
        (lambda: make(devices=[3.5]), TypeError, "devices: expected a name"),
        (lambda: make(devices=[True]), TypeError, "devices: expected a name"),
        (lambda: make(devices=["tpu:0"]), ValueError, "devices: .*'tpu:0'"),
        (lambda: make(devices=["cpu:-1"]), ValueError, "devices: .*got -1"),
        (lambda: make(devices=["cpu:4294967296"]), ValueError, "devices: .*got 4294967296"),
        (lambda: make().to([]), ValueError, "device: expected at least one"),
        (lambda: make().to("tpu:0"), ValueError, "device: .*'tpu:0'"),
        (lambda: make("murmur"), ValueError, 'policy: .*"murmur"'),
        (lambda: make(7), TypeError, "policy: expected"),
        (lambda: make("mod", key=("float32", ())), TypeError, 'policy: "mod" is for integer'),
        (lambda: make("mod", key=("int32", (2,))), ValueError, 'policy: "mod" is for keys of one'),
        (lambda: make(bad_policy), RuntimeError, "no idea"),
        (lambda: make(lambda k, n: np.ones(len(k))), ValueError, "policy: .*float64"),
        (lambda: make(lambda k, n: np.zeros(7, int)), ValueError, r"policy: .*shape \(7,\)"),
        (lambda: make(lambda k, n: k + 2**32), ValueError, "policy: .*4294967296 for row 0"),
        (lambda: make().get_size("cpu:7"), ValueError, "device: expected one of cpu:0"),
        (lambda: make().insert([1], [1.0, 2.0]), ValueError, "values: expected 1 rows"),
        (lambda: make().insert(np.ones(3), [1.0] * 3), TypeError, "keys: expected int64"),
        (lambda: make().reserve(-1), ValueError, "capacity"),
    ],
)
def test_errors_say_what_was_expected(call, error, says):
    with pytest.raises(error, match=says):
        call()


@cpu_only
def test_a_batch_that_raises_changes_no_shard():
    seen = []

    def policy(keys, shards):
        if 666 in keys:
            raise LookupError("not that one")
        seen.append(len(keys))
        return keys % shards

    table = make(policy)
    table.insert(np.arange(10), np.ones(10))
    with pytest.raises(LookupError, match="not that one"):
        table.insert([600, 666], [1.0, 1.0])
    assert len(table) == 10 and 600 not in table
    table.insert([600], [1.0])
    assert len(table) == 11


@cpu_only
def test_a_forked_worker_uses_its_own_pools(run_program):
    run_program(
        """
        import os, numpy as np, tensorhash as th
        th.set_num_threads(8)
        m = th.ShardedHashMap(0, "int64", (), "int64", (), devices=["cpu:0", "cpu:1", "cpu:2"])
        keys = np.arange(50000)
        m.insert(keys, keys)
        child = os.fork()
        assert (m.get(keys) == keys).all()
        m.accumulate(keys, keys)
        assert (m.get(keys) == 2 * keys).all()
        if child == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """
    )
