"""BoundedHashMap against a dict that takes one row after the other."""

import pickle

import numpy as np
import pytest
from bounded_oracle import Oracle
from hypothesis import given
from hypothesis import strategies as st
from oracle import same

import tensorhash
from tensorhash import BoundedHashMap


def check(table, oracle):
    by_index = sorted((entry[0], key, *entry[1:3]) for key, entry in oracle.entries.items())
    assert len(table) == len(by_index) <= table.max_capacity
    assert table.active_buf_indices().tolist() == [one[0] for one in by_index]
    assert table.keys().tolist() == [one[1] for one in by_index]
    assert table.items()[1].tolist() == [one[2] for one in by_index]
    assert table.scores().tolist() == [one[3] for one in by_index]
    assert table.clock == oracle.clock
    table.validate()


def join(table, oracle, reduce, keys, values, scores=None):
    verb = {"first": "insert", "last": "insert_or_assign", "sum": "accumulate"}[reduce]
    indices, added, evicted = getattr(table, verb)(keys, values, scores=scores)
    wanted = oracle.join(keys, values, reduce, scores)
    assert (indices.tolist(), added.tolist()) == wanted[:2]
    got = zip(evicted.keys.tolist(), evicted.values.tolist(), evicted.scores.tolist(), strict=True)
    assert list(got) == wanted[2]
    check(table, oracle)


KEYS = st.lists(st.integers(0, 9), max_size=12)
CALLS = st.lists(
    st.tuples(st.sampled_from(["first", "last", "sum", "touch", "erase"]), KEYS, st.integers()),
    max_size=8,
)


@pytest.mark.parametrize("eviction", ["lru", "score"])
@given(capacity=st.integers(1, 7), calls=CALLS)
def test_random_programs_agree_with_the_oracle(eviction, capacity, calls):
    table = BoundedHashMap(capacity, "int64", (), "int64", (), eviction=eviction)
    oracle = Oracle(capacity, eviction)
    for number, (what, keys, seed) in enumerate(calls):
        rng = np.random.default_rng(abs(seed))
        values = rng.integers(0, 100, len(keys)).tolist()
        scores = rng.integers(-3, 4, len(keys)).tolist() if eviction == "score" else None
        if what == "erase":
            table.erase(keys)
            oracle.erase(keys)
        elif what == "touch":
            given_scores = scores if number % 2 else None
            same(table.get(keys), table.get(keys, touch=True, scores=given_scores))
            oracle.touch(keys, given_scores)
        else:
            join(table, oracle, what, keys, values, scores)
    check(table, oracle)


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("eviction", ["lru", "score"])
def test_big_batches_agree_with_the_oracle(eviction, threads):
    tensorhash.set_num_threads(threads)
    rng = np.random.default_rng(5)
    table = BoundedHashMap(300, "int64", (), "int64", (), eviction=eviction)
    oracle = Oracle(300, eviction)
    for _ in range(2):
        keys = rng.integers(0, 700, 4500).tolist()
        scores = rng.integers(0, 10**6, 4500).tolist() if eviction == "score" else None
        join(table, oracle, "sum", keys, list(range(4500)), scores)


@pytest.mark.parametrize("eviction", ["lru", "score"])
def test_a_batch_larger_than_the_capacity_loses_nothing(eviction):
    keys = np.arange(10_000)
    values = keys * 2.0
    scores = np.random.default_rng(6).permutation(10_000) if eviction == "score" else None
    table = BoundedHashMap(64, "int64", (), "float64", (), eviction=eviction)
    indices, added, evicted = table.insert(keys, values, scores=scores)
    kept, kept_values = table.items()
    same(np.sort(np.concatenate([kept, evicted.keys])), keys)
    same(evicted.values, evicted.keys * 2.0)
    same(kept_values, kept * 2.0)
    assert len(table) == 64
    same(np.flatnonzero(indices >= 0), np.sort(kept))
    if eviction == "lru":
        assert added.all()
        same(np.sort(kept), keys[-64:])
    else:
        same(np.sort(kept), np.sort(np.argsort(scores)[-64:]))


def test_finding_does_not_count_as_a_use_but_touching_does():
    cache = BoundedHashMap(2, "int64", (), "int64", ())
    cache.insert([1, 2], [10, 20])
    cache.find([1])
    cache.contains([1])
    cache.get([1])
    assert 1 in cache
    assert cache.clock == 1
    assert cache.insert([3], [30])[2].keys.tolist() == [1]
    cache.get([2], touch=True)
    assert cache.clock == 3
    _, _, evicted = cache.insert([4], [40])
    assert evicted.keys.tolist() == [3]
    assert evicted.values.tolist() == [30]
    assert evicted.scores.tolist() == [2]


def test_a_key_may_leave_and_come_back_in_one_batch():
    cache = BoundedHashMap(1, "int64", (), "int64", ())
    indices, added, evicted = cache.accumulate([7, 7, 8, 7], [1, 2, 3, 4])
    assert added.tolist() == [True, False, True, True]
    assert indices.tolist() == [0, 0, -1, 0]
    assert evicted.keys.tolist() == [7, 8]
    assert evicted.values.tolist() == [3, 3]
    assert cache.get([7]).tolist() == [4]


@pytest.mark.parametrize("eviction", ["lru", "score"])
def test_files_pickles_and_clones_behave_like_the_table(eviction, tmp_path):
    rng = np.random.default_rng(7)

    def feed(table, seed):
        rows = np.random.default_rng(seed)
        keys = rows.integers(0, 60, (90, 3)).astype(np.int32)
        scores = rows.integers(0, 9, 90) if eviction == "score" else None
        values = rows.normal(size=(90, 2)).astype(np.float32)
        return table.insert_or_assign(keys, (values, np.arange(90)), scores=scores)

    table = BoundedHashMap(
        40,
        "int32",
        (3,),
        value_dtypes=["float32", "int64"],
        value_element_shapes=[(2,), ()],
        eviction=eviction,
    )
    for seed in rng.integers(0, 1000, 3):
        feed(table, seed)
    table.save(tmp_path / "cache")
    others = [
        BoundedHashMap.load(tmp_path / "cache.thash"),
        pickle.loads(pickle.dumps(table)),
        table.clone(),
    ]
    wanted = feed(table, 11)
    assert len(wanted[2].keys) > 0
    for other in others:
        assert other.eviction == eviction
        got = feed(other, 11)
        same(got[0], wanted[0])
        same(got[2].keys, wanted[2].keys)
        same(got[2].values[0], wanted[2].values[0])
        same(got[2].values[1], wanted[2].values[1])
        same(got[2].scores, wanted[2].scores)
        assert other.clock == table.clock
        same(other.scores(), table.scores())
    with pytest.raises(ValueError, match="cache.thash"):
        tensorhash.HashMap.load(tmp_path / "cache.thash")
    with pytest.raises(ValueError, match=r"expected a .thash file"):
        table.save(tmp_path / "cache.npz")


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    cache = BoundedHashMap(2, torch.int64, (), torch.bfloat16, (2,), eviction="score")
    keys = torch.tensor([1, 2, 3])
    values = torch.ones(3, 2, dtype=torch.bfloat16)
    indices, added, evicted = cache.insert(keys, values, scores=torch.tensor([3, 1, 2]))
    assert indices.tolist() == [0, -1, 1]
    assert added.tolist() == [True, True, True]
    assert evicted.keys.tolist() == [2]
    assert evicted.values.dtype == torch.bfloat16
    assert cache.scores().tolist() == [3, 2]


def test_update_steps_and_uses_keys():
    sgd = tensorhash.optim.SGD(lr=1.0)
    cache = BoundedHashMap(2, "int64", (), **sgd.columns("float32", ()))
    cache.activate([1, 2])
    indices, found = cache.update([1, 5], np.float32([1, 1]), sgd)
    assert indices.tolist() == [0, -1]
    assert found.tolist() == [True, False]
    _, _, evicted = cache.activate([3])
    assert evicted.keys.tolist() == [2]
    assert cache.get([1]).tolist() == [-1]
    with pytest.raises(ValueError, match="missing: a bounded table does not insert in update"):
        cache.update([9], np.float32([1]), sgd, missing="insert")
    with pytest.raises(KeyError, match="insert them first, or set missing to skip") as raised:
        cache.update([9], np.float32([1]), sgd, missing="error")
    assert '"insert"' not in str(raised.value)


def test_mistakes_are_named_and_change_nothing():
    with pytest.raises(ValueError, match="max_capacity: expected 1 to 2147483647 entries, got 0"):
        BoundedHashMap(0, "int64", (), "int64", ())
    with pytest.raises(ValueError, match="max_capacity: expected 1 to 2147483647 entries, got -1"):
        BoundedHashMap(-1, "int64", (), "int64", ())
    with pytest.raises(TypeError, match="max_capacity: expected an int, got float"):
        BoundedHashMap(1.5, "int64", (), "int64", ())
    with pytest.raises(ValueError, match='eviction: expected "lru" or "score", got "lfu"'):
        BoundedHashMap(1, "int64", (), "int64", (), eviction="lfu")
    lru = BoundedHashMap(2, "int64", (), "int64", ())
    scored = BoundedHashMap(2, "int64", (), "int64", (), eviction="score")
    lru.insert([1, 2], [1, 2])
    scored.insert([1, 2], [1, 2], scores=[1, 2])
    before = pickle.dumps(lru), pickle.dumps(scored)
    with pytest.raises(ValueError, match="scores: this table evicts the least recently used entry"):
        lru.insert([3], [3], scores=[1])
    with pytest.raises(ValueError, match="scores: this table evicts by score: expected int64"):
        scored.insert([3], [3])
    with pytest.raises(ValueError, match="scores: expected 1 rows, as many as keys, got 2"):
        scored.insert([3], [3], scores=[1, 2])
    with pytest.raises(TypeError, match="scores: expected int64, got float64"):
        scored.insert([3], [3], scores=np.array([0.5]))
    with pytest.raises(ValueError, match="scores: a get without touch=True"):
        scored.get([1], scores=[1])
    with pytest.raises(ValueError, match="capacity: expected 0 to 2, got 3"):
        lru.reserve(3)
    with pytest.raises(ValueError, match="capacity: expected 0 to 2, got -5"):
        lru.reserve(-5)
    with pytest.raises(TypeError, match="from_items: a bounded table"):
        BoundedHashMap.from_items(np.arange(3), np.arange(3))
    assert (pickle.dumps(lru), pickle.dumps(scored)) == before


def test_empty_batches_and_views():
    cache = BoundedHashMap(3, "int64", (), "float32", (2,))
    indices, added, evicted = cache.insert([], [])
    assert indices.shape == added.shape == (0,)
    assert evicted.values.shape == (0, 2)
    view = cache.value_tensor()
    assert view.shape == (3, 2)
    for key in range(8):
        cache.insert([key], [[key, key]])
    same(view, cache.value_tensor())
    assert np.shares_memory(view, cache.value_tensor())
    cache.clear()
    assert len(cache) == 0
    assert cache.clock == 9
    same(cache.compact(), np.int32([-1, -1, -1]))
