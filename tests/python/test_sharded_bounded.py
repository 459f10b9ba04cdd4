"""ShardedBoundedHashMap against one dict per shard that takes one row after the other."""

import copy
import pickle

import numpy as np
import pytest
from bounded_oracle import Oracle
from oracle import same

import tensorhash
from tensorhash import BoundedHashMap, HashMap, ShardedBoundedHashMap, ShardedHashMap

DEVICES = ["cpu:0", "cpu:1", "cpu:2"]


def make(capacity, eviction="lru", devices=DEVICES, policy="hash"):
    return ShardedBoundedHashMap(
        capacity, "int64", (), "int64", (), devices=devices, policy=policy, eviction=eviction
    )


class Shards:
    """One Oracle per shard with the table's clock; each row goes, alone, to its shard's."""

    def __init__(self, table):
        self.table, self.clock = table, 0
        count = len(table.devices)
        share = [
            table.max_capacity // count + (i < table.max_capacity % count) for i in range(count)
        ]
        self.parts = [Oracle(rows, table.eviction) for rows in share]

    def _row_by_row(self, keys, call):
        self.clock += 1
        for row, shard in enumerate(self.table.shard_of(np.array(keys, np.int64)).tolist()):
            self.parts[shard].clock = self.clock - 1
            call(self.parts[shard], row)

    def join(self, reduce, keys, values, scores):
        verb = {"first": "insert", "last": "insert_or_assign", "sum": "accumulate"}[reduce]
        indices, added, evicted = getattr(self.table, verb)(keys, values, scores=scores)
        wanted, gone = [], []

        def one(part, row):
            score = None if scores is None else [scores[row]]
            answer = part.join([keys[row]], [values[row]], reduce, score)
            wanted.append(answer[1][0])
            gone.extend(answer[2])

        self._row_by_row(keys, one)
        shards = self.table.shard_of(np.array(keys, np.int64)).tolist()
        where = [
            self.parts[s].entries.get(key, [-1])[0] for s, key in zip(shards, keys, strict=True)
        ]
        assert added.tolist() == wanted
        assert indices.tolist() == [
            -1 if at < 0 else s << 32 | at for s, at in zip(shards, where, strict=True)
        ]
        rows = (evicted.keys.tolist(), evicted.values.tolist(), evicted.scores.tolist())
        assert list(zip(*rows, strict=True)) == gone

    def touch(self, keys, scores):
        same(self.table.get(keys), self.table.get(keys, touch=True, scores=scores))
        one = [None if scores is None else [score] for score in scores or keys]
        self._row_by_row(keys, lambda part, row: part.touch([keys[row]], one[row]))

    def erase(self, keys):
        self.table.erase(keys)
        self._row_by_row(keys, lambda part, row: part.erase([keys[row]]))

    def check(self):
        live = [
            (shard << 32 | entry[0], key, *entry[1:3])
            for shard, part in enumerate(self.parts)
            for key, entry in part.entries.items()
        ]
        indices, keys, values, scores = zip(*sorted(live), strict=True) if live else [()] * 4
        table = self.table
        assert len(table) == len(live) <= table.max_capacity
        assert table.active_buf_indices().tolist() == list(indices)
        assert table.keys().tolist() == list(keys)
        assert table.items()[1].tolist() == list(values)
        assert table.scores().tolist() == list(scores)
        assert table.clock == self.clock
        table.validate()


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("eviction", ["lru", "score"])
@pytest.mark.parametrize("policy", ["hash", "mod"])
def test_a_program_agrees_with_an_oracle_for_each_shard(policy, eviction, threads):
    tensorhash.set_num_threads(threads)
    rng = np.random.default_rng(3)
    for capacity, rows in ((3, 9), (20, 50), (200, 5000)):
        shards = Shards(make(capacity, eviction, policy=policy))
        for number in range(6):
            keys = rng.integers(-capacity, 2 * capacity, rows).tolist()
            values = rng.integers(0, 100, rows).tolist()
            scores = rng.integers(-3, 4, rows).tolist() if eviction == "score" else None
            shards.join(("first", "last", "sum")[number % 3], keys, values, scores)
            shards.touch(
                keys[: rows // 3], None if scores is None or number % 2 else scores[: rows // 3]
            )
            shards.erase(keys[:3])
            shards.check()


def test_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(4)
    keys, values = rng.integers(0, 9000, 30000), np.arange(30000)
    images = []
    for threads in (1, 2, 8):
        tensorhash.set_num_threads(threads)
        table = make(4000)
        _, _, first = table.insert(keys, values)
        indices, added, second = table.accumulate(keys[::-1], values)
        out = (indices, added, *first, *second, *table.items(), table.scores())
        images.append([x.tobytes() for x in out])
    assert images[0] == images[1] == images[2]


@pytest.mark.parametrize("eviction", ["lru", "score"])
def test_one_shard_is_a_bounded_table(eviction):
    rng = np.random.default_rng(5)
    one = BoundedHashMap(50, "int64", (), "int64", (), eviction=eviction)
    many = make(50, eviction, devices=["cpu:0"])
    for _ in range(4):
        keys, values = rng.integers(0, 120, 200), rng.integers(0, 9, 200)
        scores = rng.integers(0, 9, 200) if eviction == "score" else None
        wanted = one.accumulate(keys, values, scores=scores)
        got = many.accumulate(keys, values, scores=scores)
        same(got[0], wanted[0].astype(np.int64))
        same(got[1], wanted[1])
        for ours, theirs in zip(got[2], wanted[2], strict=True):
            same(ours, theirs)


@pytest.mark.parametrize("eviction", ["lru", "score"])
def test_files_pickles_and_clones_behave_like_the_table(eviction, tmp_path):
    def feed(table, seed):
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 9, 90) if eviction == "score" else None
        return table.insert(rng.integers(0, 99, 90), rng.integers(0, 9, 90), scores=scores)

    table = make(40, eviction)
    feed(table, 1)
    feed(table, 2)
    table.save(tmp_path / "cache")
    others = [
        ShardedBoundedHashMap.load(tmp_path / "cache"),
        ShardedBoundedHashMap.load(tmp_path / "cache", ["cpu:5", "cpu:0", "cpu:7"]),
        pickle.loads(pickle.dumps(table)),
        table.clone(),
        copy.deepcopy(table),
        table.to(["cpu:3", "cpu:4", "cpu:5"]),
    ]
    wanted = feed(table, 3)
    assert len(wanted[2].keys) > 0
    for other in others:
        assert isinstance(other, ShardedBoundedHashMap)
        assert (other.eviction, other.max_capacity) == (eviction, 40)
        got = feed(other, 3)
        same(got[0], wanted[0])
        for ours, theirs in zip(got[2], wanted[2], strict=True):
            same(ours, theirs)
        assert other.clock == table.clock
        same(other.scores(), table.scores())
    with pytest.raises(ValueError, match="devices: a bounded table loads only onto as many"):
        ShardedBoundedHashMap.load(tmp_path / "cache", ["cpu:0"])
    with pytest.raises(ValueError, match="loads only onto as many .* and another policy"):
        ShardedBoundedHashMap.load(tmp_path / "cache", policy="mod")
    with pytest.raises(ValueError, match=r"cache\.thash.* ShardedBoundedHashMap's load reads"):
        ShardedHashMap.load(tmp_path / "cache")
    ShardedHashMap(0, "int64", (), "int64", (), devices=DEVICES).save(tmp_path / "plain")
    with pytest.raises(ValueError, match=r"plain\.thash.* ShardedHashMap's load reads"):
        ShardedBoundedHashMap.load(tmp_path / "plain")
    with pytest.raises(ValueError, match="cache"):
        HashMap.load(tmp_path / "cache")


def test_several_columns_empty_batches_torch_and_update():
    torch = pytest.importorskip("torch")
    sgd = tensorhash.optim.SGD(lr=1.0)
    cache = ShardedBoundedHashMap(
        4, torch.int64, (), **sgd.columns(torch.float32, (2,)), devices=DEVICES[:2], policy="mod"
    )
    indices, added, evicted = cache.insert(torch.tensor([], dtype=torch.int64), torch.zeros(0, 2))
    assert (indices.shape, added.shape, evicted.values.shape) == ((0,), (0,), (0, 2))
    cache.activate(torch.tensor([0, 2, 1]))
    _, found = cache.update(torch.tensor([0, 7]), torch.ones(2, 2), sgd)
    assert found.tolist() == [True, False]
    _, _, evicted = cache.activate(torch.tensor([4, 3]))
    assert evicted.keys.tolist() == [2]  # the update used 0
    assert cache.get(torch.tensor([0])).tolist() == [[-1.0, -1.0]]
    with pytest.raises(ValueError, match="missing: a bounded table does not insert in update"):
        cache.update(torch.tensor([9]), torch.ones(1, 2), sgd, missing="insert")
    cache.clear()
    assert len(cache) == 0
    assert [len(moved) for moved in cache.compact()] == [2, 2]


def test_mistakes_are_named_and_change_nothing():
    for capacity in (0, 2, -1):
        with pytest.raises(ValueError, match=f"max_capacity: expected 3 to .*, got {capacity}"):
            make(capacity)
    with pytest.raises(TypeError, match="max_capacity: expected an int, got float"):
        make(1.5)
    with pytest.raises(ValueError, match='eviction: expected "lru" or "score", got "lfu"'):
        make(9, "lfu")
    table = make(9)
    table.insert([1, 2, 3], [1, 2, 3])
    before = pickle.dumps(table)
    for call in (
        lambda: table.set([1], [1]),
        lambda: table.insert_from_cpu("cpu:0", [1], [1]),
        lambda: table.insert([1], [1], scores=[1]),
        lambda: table.reserve(10),
    ):
        with pytest.raises(ValueError, match=r"bounded|scores|capacity"):
            call()
    with pytest.raises(TypeError, match="from_items: a bounded table"):
        ShardedBoundedHashMap.from_items(np.arange(3), np.arange(3))
    table.reserve(9)
    assert pickle.dumps(table) == before
