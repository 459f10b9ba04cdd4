"""Bounded embeddings, admission, max_norm, padding and counters, against models in Python."""

import collections
import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensorhash  # noqa: E402
from tensorhash.torch import HashEmbedding, HashEmbeddingBag, TableOptimizer  # noqa: E402
from tensorhash.torch.embedding import seeded  # noqa: E402


def batches(seed, count=60, ids=40, size=8):
    rng = np.random.default_rng(seed)
    return [rng.zipf(1.4, size) % ids for _ in range(count)]


class Model:
    """Ids with ranks: those of a batch that are there are used first, then new ones come."""

    def __init__(self, capacity, eviction):
        self.capacity, self.eviction = capacity, eviction
        self.ranks, self.time, self.evicted = {}, 0, 0

    def train(self, batch, scores):
        counts = collections.Counter(batch.tolist())
        last = dict(zip(batch.tolist(), scores, strict=True))
        there = [one for one in counts if one in self.ranks]
        for one in there + [one for one in counts if one not in self.ranks]:
            self.time += 1
            uses = self.ranks.get(one, (0, 0))[0] + counts[one]
            first = {"lru": 0, "lfu": uses, "score": last[one]}[self.eviction]
            self.ranks[one] = (first, self.time)
            if len(self.ranks) > self.capacity:
                del self.ranks[min(self.ranks, key=self.ranks.get)]
                self.evicted += 1


@pytest.mark.parametrize("eviction", ["lru", "lfu", "score"])
def test_bounded_layers_evict_as_a_model_does(eviction):
    layer = HashEmbedding(2, max_capacity=12, eviction=eviction, seed=1)
    model = Model(12, eviction)
    rng = np.random.default_rng(5)
    for batch in batches(4):
        scores = rng.integers(0, 100, len(batch))
        given = torch.from_numpy(scores) if eviction == "score" else None
        rows = layer(torch.from_numpy(batch), given)
        assert torch.equal(rows, HashEmbedding(2, seed=1)(torch.from_numpy(batch)))
        model.train(batch, scores.tolist())
        assert set(layer.ids().tolist()) == set(model.ranks)
    assert layer.counters.evictions == model.evicted > 0
    layer._rows.table.validate()


def test_an_id_that_was_evicted_before_the_step_is_left_out():
    layer = HashEmbedding(1, max_capacity=2, init="zeros")
    optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
    layer(torch.tensor([1, 2, 3])).sum().backward()  # 1 is evicted at once
    optimizer.step()
    assert layer.eval()(torch.tensor([1, 2, 3])).tolist() == [[0.0], [-1.0], [-1.0]]


def test_scores_are_for_score_eviction_only():
    with pytest.raises(ValueError, match="scores: expected one per id"):
        HashEmbedding(2, max_capacity=3, eviction="score")(torch.tensor([1]))
    for options in ({}, {"capacity": 3}, {"max_capacity": 3}):
        with pytest.raises(ValueError, match="scores: only an embedding with max_capacity"):
            HashEmbedding(2, **options)(torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(ValueError, match="scores: expected 2, one per id, got 1"):
        HashEmbedding(2, max_capacity=3, eviction="score")(torch.tensor([1, 2]), torch.tensor([1]))


def test_expire_removes_what_was_not_used_since():
    layer = HashEmbedding(1, max_capacity=10)
    layer(torch.tensor([1, 2, 3]))
    clock = layer.clock
    layer(torch.tensor([2, 4]))
    assert layer.expire(before=clock) == 0
    assert layer.expire(before=clock + 1) == 2
    assert sorted(layer.ids().tolist()) == [2, 4]
    for other in (HashEmbedding(1), HashEmbedding(1, max_capacity=2, eviction="lfu")):
        with pytest.raises(ValueError, match="expire: only an embedding with max_capacity"):
            other.expire(before=1)
    with pytest.raises(ValueError, match="expire: a layer with capacity= keeps all ids"):
        HashEmbedding(1, capacity=3).expire(before=1)


@pytest.mark.parametrize("capacity", [None, 100])
def test_admission_waits_for_sightings(capacity):
    layer = HashEmbedding(2, capacity=capacity, admit_after=3, seed=1, oov=0.5)
    seen = collections.Counter()
    rows_of = HashEmbedding(2, seed=1)
    for batch in batches(6, 30):
        rows = layer(torch.from_numpy(batch))
        there = {one for one, n in seen.items() if n >= 3}
        seen.update(batch.tolist())
        for one, row in zip(batch.tolist(), rows, strict=True):
            wanted = rows_of(torch.tensor([one]))[0] if seen[one] >= 3 else torch.full((2,), 0.5)
            assert torch.equal(row, wanted)
        assert {one for one, n in seen.items() if n >= 3} == set(layer.ids().tolist())
        assert there <= set(layer.ids().tolist())
    waiting = layer._rows.admission.seen
    assert dict(zip(*[part.tolist() for part in waiting.items()], strict=True)) == {
        one: n for one, n in seen.items() if n < 3
    }


def test_ids_that_wait_have_no_gradient():
    layer = HashEmbedding(1, admit_after=2, init="zeros", oov=7.0, padding_idx=0)
    optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
    out = layer(torch.tensor([5, 6, 0, 5]))
    assert out[:, 0].tolist() == [0.0, 7.0, 0.0, 0.0]
    (out * torch.tensor([[1.0], [10.0], [100.0], [2.0]])).sum().backward()
    optimizer.step()
    assert layer.eval()(torch.tensor([5, 6, 0]))[:, 0].tolist() == [-3.0, 7.0, 0.0]


def test_admission_by_chance_is_seeded_and_fair():
    layers = [HashEmbedding(1, admit_probability=0.25, seed=seed) for seed in (1, 1, 2)]
    ids = torch.arange(4000)
    for layer in layers:
        layer(ids)
    first, again, other = [set(layer.ids().tolist()) for layer in layers]
    assert first == again != other
    assert 900 < len(first) < 1100
    layers[0](ids)
    assert 1650 < len(layers[0]) < 1850  # of the others, a quarter again


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
@pytest.mark.parametrize("capacity", [None, 30])
def test_max_norm_is_torch_s(norm_type, capacity):
    how = {"max_norm": 0.7, "norm_type": norm_type}
    free = HashEmbedding(4, seed=1, init="normal")
    layer = HashEmbedding(4, seed=1, init="normal", capacity=capacity, **how)
    ids = torch.arange(20)
    rows = free(ids).detach().clone()
    peer = torch.nn.Embedding.from_pretrained(rows, **how)
    torch.testing.assert_close(layer(ids), peer(ids))
    torch.testing.assert_close(layer.rows(), peer.weight.detach())
    optimizer = (
        TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
        if capacity is None
        else torch.optim.SGD(layer.parameters(), 1.0)
    )
    layer(ids).sum().backward()
    optimizer.step()
    stored = layer.rows().clone()
    wanted = torch.nn.Embedding.from_pretrained(stored.clone(), **how)(ids)
    torch.testing.assert_close(layer.eval()(ids), wanted)
    torch.testing.assert_close(layer.rows(), stored)  # eval does not write
    torch.testing.assert_close(layer.train()(ids), wanted)
    torch.testing.assert_close(layer.rows(), wanted)


@pytest.mark.filterwarnings("ignore:a backward pass reached")
@pytest.mark.parametrize("capacity", [None, 30])
def test_padding_gives_zeros_and_never_a_row(capacity):
    layer = HashEmbedding(2, padding_idx=-1, seed=1, capacity=capacity, oov=3.0)
    ids = torch.tensor([[4, -1], [-1, 5]])
    rows = layer(ids)
    assert rows[0, 1].tolist() == rows[1, 0].tolist() == [0.0, 0.0]
    assert len(layer) == 2
    rows.sum().backward()
    assert torch.equal(layer.eval()(ids), rows)
    assert layer.train()(torch.tensor([-1, -1])).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_counters_count_rows():
    layer = HashEmbedding(1, max_capacity=3, padding_idx=0)
    layer(torch.tensor([1, 1, 2, 0]))
    layer(torch.tensor([1, 3, 4, 4]))
    layer.eval()(torch.tensor([4, 9, 0]))
    counters = layer.counters
    assert (counters.hits, counters.misses) == (1 + 1, 3 + 3 + 1 + 1)
    assert (counters.added, counters.evictions) == (4, 1)


def test_device_input_is_refused_with_the_way_out():
    ids = torch.empty(3, dtype=torch.int64, device="meta")
    for layer in (HashEmbedding(2, max_capacity=5), HashEmbeddingBag(2, max_capacity=5)):
        with pytest.raises(RuntimeError, match=r"ids: expected a tensor on cpu.*pass ids\.cpu\(\)"):
            layer(ids)
        with pytest.raises(RuntimeError, match=r"a bounded embedding stays on the CPU.*\.cpu\(\)"):
            layer.to("meta")
    with pytest.raises(ValueError, match=r"max_capacity: .*pass ids\.cpu\(\)"):
        HashEmbedding(2, max_capacity=5, device="cuda")
    with pytest.raises(RuntimeError, match="ids: expected a tensor on cpu"):
        HashEmbedding(2)(ids)
    with pytest.raises(TypeError, match=r"dtype: expected torch\.float32.*got torch\.float64"):
        HashEmbedding(2).double()


def test_bounded_state_keeps_the_order_of_eviction():
    def run(layer, parts):
        for part in parts:
            layer(torch.from_numpy(part))
        return sorted(layer.ids().tolist())

    for eviction in ("lru", "lfu"):
        parts = batches(8)
        one = HashEmbedding(1, max_capacity=9, eviction=eviction)
        run(one, parts[:30])
        two = HashEmbedding(1, max_capacity=9, eviction=eviction)
        two.load_state_dict(one.state_dict())
        assert run(one, parts[30:]) == run(two, parts[30:])
        assert two.counters == one.counters
    with pytest.raises(ValueError, match="state_dict: expected max_capacity=5, got 9"):
        HashEmbedding(1, max_capacity=5)._rows.restore(
            HashEmbedding(1, max_capacity=9)._rows.state()
        )


def test_an_optimizer_comes_before_the_rows_of_a_bounded_table():
    layer = HashEmbedding(1, max_capacity=3)
    layer(torch.tensor([1]))
    with pytest.raises(ValueError, match="make the TableOptimizer before the first batch"):
        TableOptimizer(layer, tensorhash.optim.Adam())
    free = HashEmbedding(2, seed=1)
    rows = free(torch.tensor([1, 2])).detach()
    TableOptimizer(free, tensorhash.optim.Adam())
    assert torch.equal(free.eval()(torch.tensor([1, 2])), rows)
    with pytest.raises(ValueError, match="modules: expected a model with an embedding layer"):
        TableOptimizer(torch.nn.Linear(1, 1), tensorhash.optim.Adam())


def test_chances_are_between_zero_and_one():
    drawn = seeded.chance(np.arange(10000), 3, 0)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.01
    assert len(seeded.hash_strings([])) == 0


@pytest.mark.parametrize("max_capacity", [None, 9])
def test_rows_that_nothing_trains_say_so_once_and_keep_no_gradients(max_capacity):
    def backward(layer):
        layer(torch.tensor([1, 2])).sum().backward()

    layer = HashEmbedding(1, init="zeros", max_capacity=max_capacity)
    with pytest.warns(UserWarning, match="no TableOptimizer trains them"):
        backward(layer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backward(layer)
        assert not layer._rows.pending
        layer = HashEmbedding(1, init="zeros", max_capacity=max_capacity)
        optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
        backward(layer)
        optimizer.step()
        assert layer.rows().tolist() == [[-1.0], [-1.0]]
    with pytest.warns(UserWarning, match="no TableOptimizer"):
        backward(copy.deepcopy(layer))
