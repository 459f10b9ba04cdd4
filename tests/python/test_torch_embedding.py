"""HashEmbedding, HashEmbeddingBag and the collection, against torch's layers and a dict.

Over 400 lines: one file tests three layers that share their oracles.
"""

import copy
import io
import math
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensorhash  # noqa: E402
from tensorhash.torch import (  # noqa: E402
    HashEmbedding,
    HashEmbeddingBag,
    HashEmbeddingBagCollection,
    TableOptimizer,
)

ODD_IDS = [-(2**63), 2**63 - 1, -1, 0, 1, 2**60, 7]


def same(left, right):
    assert left.dtype == right.dtype
    assert torch.equal(left, right), (left, right)


def twin(layer, ids):
    """A torch.nn.Embedding with the layer's rows, and the row of each id in it."""
    rows = layer(torch.tensor(ids)).detach().clone()
    peer = torch.nn.Embedding.from_pretrained(rows, freeze=False)
    return peer, {id_: row for row, id_ in enumerate(ids)}


def test_training_adds_rows_and_eval_does_not():
    layer = HashEmbedding(3, seed=1, oov=torch.tensor([1.0, 2.0, 3.0]))
    ids = torch.tensor([[5, -5], [5, 2**62]])
    rows = layer(ids)
    assert rows.shape == (2, 2, 3)
    assert len(layer) == 3
    same(rows[0, 0], rows[1, 0])
    assert not torch.equal(rows[0, 0], rows[0, 1])
    layer.eval()
    same(layer(ids), rows.detach())
    same(layer(torch.tensor([8])), torch.tensor([[1.0, 2.0, 3.0]]))
    assert len(layer) == 3
    assert layer(torch.empty(0, dtype=torch.int64)).shape == (0, 3)
    layer.train()
    assert layer(torch.empty((2, 0), dtype=torch.int64)).shape == (2, 0, 3)


def test_any_integer_is_an_id():
    layer = HashEmbedding(2, seed=0)
    rows = layer(torch.tensor(ODD_IDS)).detach()
    assert len(layer) == len(ODD_IDS)
    assert len({tuple(row) for row in rows.tolist()}) == len(ODD_IDS)
    same(layer.eval()(torch.tensor(ODD_IDS[::-1])), rows.flip(0))
    with pytest.raises(TypeError, match=r"ids: expected a torch tensor of integers, got torch\.fl"):
        layer(torch.tensor([1.5]))
    with pytest.raises(TypeError, match="ids: expected a torch tensor of integers, got list"):
        layer([1])
    # Beyond int64, an unsigned id would become the id of another number.
    with pytest.raises(TypeError, match=r"ids: expected integers that int64 holds, got torch\.ui"):
        layer(torch.tensor([1], dtype=torch.uint64))
    for narrow in (torch.uint8, torch.int16, torch.int32):
        same(layer(torch.tensor([0], dtype=narrow)), layer(torch.tensor([0])))


@pytest.mark.parametrize("init", ["uniform", "normal"])
def test_the_first_row_depends_only_on_seed_and_id(init):
    ids = torch.arange(-500, 1500)
    one = HashEmbedding(8, seed=3, init=init)
    rows = one(ids).detach()
    other = HashEmbedding(8, seed=3, init=init)
    for part in ids.flip(0).split(7):
        other(part)
    same(other.eval()(ids), rows)
    assert not torch.equal(HashEmbedding(8, seed=4, init=init)(ids), rows)
    deviation = 1.0 if init == "normal" else 8**-0.5 / 3**0.5
    assert abs(rows.mean()) < 0.02 * deviation
    assert abs(rows.std() / deviation - 1) < 0.02
    assert abs(np.corrcoef(rows.numpy().T) - np.eye(8)).max() < 0.1


def test_first_rows_have_recorded_bits():
    """Files hold trained rows only, so these numbers must never change."""
    layer = HashEmbedding(2, seed=5, dtype=torch.float64, init_scale=1.0)
    assert layer(torch.tensor([7])).tolist() == RECORDED_UNIFORM
    layer = HashEmbedding(2, seed=5, dtype=torch.float64, init="normal")
    assert layer(torch.tensor([7])).tolist() == RECORDED_NORMAL


RECORDED_UNIFORM = [[0.41800665855407715, -0.13103365898132324]]
RECORDED_NORMAL = [[0.29718017578125, -0.1829986572265625]]


def test_the_seed_comes_from_torch():
    torch.manual_seed(1)
    one = HashEmbedding(4)(torch.tensor([1]))
    torch.manual_seed(1)
    same(HashEmbedding(4)(torch.tensor([1])), one)


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
    "sparse-adam": lambda parameters: torch.optim.SparseAdam(parameters, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("max_norm", [None, 0.8])
def test_torch_optimizers_give_the_bits_of_nn_embedding(name, max_norm):
    make, ids = (
        OPTIMIZERS[name],
        [int(i) for i in np.random.default_rng(0).integers(-(2**62), 2**62, 50)],
    )
    layer = HashEmbedding(4, capacity=60, seed=1, max_norm=max_norm)
    rows = layer(torch.tensor(ids)).detach().clone()
    weight = torch.zeros(60, 4)
    weight[:50] = rows
    peer = torch.nn.Embedding.from_pretrained(weight, freeze=False, sparse=True, max_norm=max_norm)
    ours, theirs = make([layer.weight]), make([peer.weight])
    torch.manual_seed(0)
    for step in range(10):
        at = torch.randint(0, 50, (8, 9))
        batch = torch.tensor(ids)[at]
        scale = torch.randn(8, 9, 4)
        for optimizer, output in ((ours, layer(batch)), (theirs, peer(at))):
            optimizer.zero_grad()
            ((output * scale).sum() + (output**2).sum() * 0.1 * step).backward()
            optimizer.step()
        same(layer.weight.detach(), peer.weight.detach())
    assert layer.weight.grad.is_sparse


def test_a_full_parameter_refuses_new_ids_and_does_not_change():
    layer = HashEmbedding(2, capacity=3, seed=1)
    rows = layer(torch.tensor([1, 2])).detach().clone()
    before = layer.weight.detach().clone()
    with pytest.raises(ValueError, match=r"at most 3 ids, and 1 rows are free, got 2 new ids"):
        layer(torch.tensor([3, 1, 4]))
    assert len(layer) == 2
    same(layer.weight.detach(), before)
    same(layer.eval()(torch.tensor([1, 2, 3])), torch.cat([rows, torch.zeros(1, 2)]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (tensorhash.optim.SGD(lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9)),
        (tensorhash.optim.Adagrad(lr=0.1), lambda p: torch.optim.Adagrad(p, 0.1)),
        (tensorhash.optim.Adam(lr=0.1), lambda p: torch.optim.Adam(p, 0.1)),
        (tensorhash.optim.AdamW(lr=0.1), lambda p: torch.optim.AdamW(p, 0.1)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_table_optimizers_are_one_torch_optimizer_per_row(ours, theirs, dtype):
    torch.manual_seed(2)
    layer = HashEmbedding(3, seed=1, dtype=dtype)
    optimizer = TableOptimizer(layer, ours)
    rows, steps = {}, {}
    for _ in range(12):
        ids = torch.randint(0, 20, (15,))
        scale = torch.randn(15, 3, dtype=dtype)
        output = layer(ids)
        for id_, row in zip(ids.tolist(), output.detach(), strict=True):
            if id_ not in rows:
                rows[id_] = torch.nn.Parameter(row.clone())
                steps[id_] = theirs([rows[id_]])
        peer = torch.stack([rows[id_] for id_ in ids.tolist()])
        for one in steps.values():
            one.zero_grad()
        optimizer.zero_grad()
        (output * scale).square().sum().backward()
        (peer * scale).square().sum().backward()
        optimizer.step()
        for id_ in set(ids.tolist()):
            steps[id_].step()
    got = layer.eval()(torch.tensor(list(rows)))
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(
        got, torch.stack([one.detach() for one in rows.values()]), rtol=tolerance, atol=tolerance
    )


def test_gradient_accumulation_and_two_lookups_are_one_step():
    def train(parts):
        layer = HashEmbedding(2, seed=1, dtype=torch.float64)
        optimizer = TableOptimizer(layer, tensorhash.optim.Adam(lr=0.1))
        for part in parts:
            (layer(torch.tensor(part)).exp().sum()).backward()
        optimizer.step()
        return layer.eval()(torch.tensor([1, 2, 3]))

    torch.testing.assert_close(train([[1, 2], [2, 3], [1]]), train([[1, 2, 2, 3, 1]]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_summed_in_floats(dtype):
    """torch adds the gradients of equal ids in their own dtype: ones stop at 2048, or at 256."""
    ids, ones = torch.zeros(1, 5000, dtype=torch.int64), torch.ones(1, 5000, dtype=dtype)
    lengths = torch.tensor([[5000]])
    how = {"init": "zeros", "dtype": dtype}
    collection = HashEmbeddingBagCollection(["a"], 2, "sum", **how)
    for layer, given in (
        (HashEmbedding(2, **how), (ids,)),
        (HashEmbeddingBag(2, "sum", **how), (ids,)),
        (HashEmbeddingBag(2, "sum", **how), (ids, None, ones)),
        (collection, (ids[0], lengths)),
        (collection, (ids[0], lengths, ones[0])),
    ):
        optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
        before = layer.rows().clone() if len(layer) else torch.zeros(1, 2, dtype=dtype)
        for _ in range(2):
            out = layer(*given)
            (out if torch.is_tensor(out) else out["a"]).sum().backward()
        optimizer.step()
        wanted = before.float() - torch.full((1, 2), 5000.0).to(dtype).float() * 2
        same(layer.rows(), wanted.to(dtype))
        optimizer.zero_grad()
    mean = HashEmbeddingBag(2, "mean", dtype=dtype, init=lambda ids: torch.ones(len(ids), 2))
    same(mean(ids).detach(), torch.ones(1, 2, dtype=dtype))


def test_schedulers_scalers_and_zero_grad_work():
    layer = HashEmbedding(1, init="zeros")
    optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    ids = torch.tensor([7])
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(layer(ids).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    assert layer.eval()(ids).item() == -(1 + 0.5 + 0.25)
    layer.train()
    optimizer.zero_grad()
    scaler.scale(layer(ids).sum() * float("inf")).backward()
    scaler.step(optimizer)  # skipped
    optimizer.zero_grad()
    layer(ids).sum().backward()
    optimizer.zero_grad()
    optimizer.step()  # nothing to do
    assert layer.eval()(ids).item() == -1.75


def test_clipping_is_by_value_then_by_norm_of_summed_gradients():
    for options, expected in (
        ({}, [-6.0, -1.0]),
        ({"clip_value": 2.0}, [-2.0, -1.0]),
        ({"clip_norm": 1.0}, [-6 / 37**0.5, -1 / 37**0.5]),
        ({"clip_value": 2.0, "clip_norm": 1.0}, [-2 / 5**0.5, -1 / 5**0.5]),
    ):
        layer = HashEmbedding(1, init="zeros")
        optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0), **options)
        (layer(torch.tensor([1, 1, 2])) * torch.tensor([[2.0], [4.0], [1.0]])).sum().backward()
        optimizer.step()
        got = layer.eval()(torch.tensor([1, 2]))[:, 0]
        torch.testing.assert_close(got, torch.tensor(expected), rtol=1e-5, atol=1e-5)


def test_state_of_a_table_optimizer_is_in_the_layer():
    def step(layer, optimizer):
        optimizer.zero_grad()
        layer(torch.tensor([1, 2, 1])).exp().sum().backward()
        optimizer.step()

    one = HashEmbedding(2, seed=1)
    optimizer = TableOptimizer(one, tensorhash.optim.Adam(lr=0.1))
    for _ in range(3):
        step(one, optimizer)
    optimizer.param_groups[0]["lr"] = 0.05
    other = HashEmbedding(2, seed=9)
    second = TableOptimizer(other, tensorhash.optim.Adam(lr=0.7))
    other.load_state_dict(one.state_dict())
    second.load_state_dict(optimizer.state_dict())
    for pair in ((one, optimizer), (other, second)):
        step(*pair)
    same(other.eval()(torch.tensor([1, 2])), one.eval()(torch.tensor([1, 2])))
    with pytest.raises(ValueError, match="expected SGD with 1 groups, got Adam with 1"):
        TableOptimizer(HashEmbedding(2), tensorhash.optim.SGD()).load_state_dict(
            optimizer.state_dict()
        )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("capacity", [None, 40])
def test_bags_equal_torch_s(mode, capacity):
    torch.manual_seed(3)
    layer = HashEmbeddingBag(3, mode, seed=2, capacity=capacity, padding_idx=-1)
    ids = torch.randint(0, 30, (40,))
    ids[::7] = -1
    offsets = torch.tensor([0, 5, 5, 20, 33])
    weights = torch.rand(40) if mode == "sum" else None
    out = layer(ids, offsets, per_sample_weights=weights)
    known = layer.ids().tolist()
    assert -1 not in known
    rows = torch.cat([layer.rows(), torch.zeros(1, 3)]).requires_grad_()
    place = torch.tensor([known.index(i) if i != -1 else len(known) for i in ids.tolist()])
    wanted = torch.nn.functional.embedding_bag(
        place, rows, offsets, mode=mode, per_sample_weights=weights, padding_idx=len(known)
    )
    same(out, wanted)
    optimizer = (
        TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
        if capacity is None
        else torch.optim.SGD(layer.parameters(), lr=1.0)
    )
    before = layer.rows().clone()
    out = layer(ids, offsets, per_sample_weights=weights)
    scale = torch.randn(5, 3)
    (out * scale).sum().backward()
    (wanted * scale).sum().backward()
    optimizer.step()
    torch.testing.assert_close(layer.rows(), before - rows.grad[:-1])
    layer.eval()
    torch.testing.assert_close(
        layer(ids, offsets, per_sample_weights=weights),
        torch.nn.functional.embedding_bag(
            place,
            torch.cat([layer.rows(), torch.zeros(1, 3)]),
            offsets,
            mode=mode,
            per_sample_weights=weights,
            padding_idx=len(known),
        ),
    )
    same(layer(ids.view(8, 5)), layer(ids, torch.arange(0, 40, 5)))


@pytest.mark.filterwarnings("ignore:a backward pass reached")
def test_per_sample_weights_have_a_gradient():
    layer = HashEmbeddingBag(2, "sum", seed=1)
    weights = torch.tensor([0.5, 2.0], requires_grad=True)
    out = layer(torch.tensor([[3, 4]]), per_sample_weights=weights.view(1, 2))
    out.sum().backward()
    torch.testing.assert_close(weights.grad, layer.eval()._evaluate(torch.tensor([3, 4])).sum(1))


def test_a_collection_is_one_bag_per_feature():
    features = {"seen": "item", "user": "user", "target": "item"}
    layer = HashEmbeddingBagCollection(features, 3, "sum", seed=1)
    values = torch.tensor([5, 6, 7, 7, 5, 5, 6, 9])
    lengths = torch.tensor([[2, 1], [1, 1], [0, 3]])
    out = layer(values, lengths)
    assert list(out) == ["seen", "user", "target"]
    assert len(layer) == 4 + 2  # items 5, 6, 7 and 9; users 7 and 5
    one = HashEmbeddingBagCollection(["item"], 3, "sum", seed=1)
    rows = {i: one(torch.tensor([i]), torch.tensor([[1]]))["item"][0] for i in (5, 6, 7, 9)}
    same(out["seen"][0], rows[5] + rows[6])
    same(out["seen"][1], rows[7])
    same(out["target"][0], torch.zeros(3))
    torch.testing.assert_close(out["target"][1], rows[5] + rows[6] + rows[9])
    assert not torch.equal(out["user"][0], rows[7])
    optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
    before = layer(values, lengths)
    layer(values, lengths)["target"].sum().backward()
    optimizer.step()
    after = layer.eval()(values, lengths)
    torch.testing.assert_close(after["seen"][0], before["seen"][0] - 2)
    same(after["user"], before["user"].detach())
    for wrong in (torch.tensor([1, 2]), lengths.float()):
        with pytest.raises(ValueError, match="lengths: expected integers in 3 rows, one per feat"):
            layer(values, wrong)
    # torch's own functions would read and write beyond their memory.
    for wrong in ([[2, 1], [1, 1], [0, 2]], [[2, 1], [1, 1], [0, 4]], [[2, 1], [1, 1], [-1, 4]]):
        with pytest.raises(ValueError, match="lengths: expected numbers from 0 on with the sum 8"):
            layer(values, torch.tensor(wrong))
    empty = layer(values[:0], torch.zeros(3, 0, dtype=torch.int64))
    assert [len(out) for out in empty.values()] == [0, 0, 0]


def test_strings_are_ids():
    layer = HashEmbedding(2, strings=True, seed=1, padding_idx="")
    rows = layer(["b", "", "a", "b"]).detach()
    same(rows[0], rows[3])
    assert rows[1].tolist() == [0.0, 0.0]
    assert len(layer) == 2
    other = HashEmbedding(2, strings=True, seed=1)
    same(other(["a", "x", "b"]).detach()[[2, 0]], rows[[0, 2]])
    layer.eval()
    same(layer(np.array(["a", "zzz", ""])), torch.cat([rows[2:3], torch.zeros(2, 2)]))
    with pytest.raises(TypeError, match="ids: expected strings"):
        layer(torch.tensor([1]))
    grid = np.array([["a", "b"], ["", "a"], ["b", "b"]])
    same(layer(grid), layer(list(grid.flat)).view(3, 2, 2))
    assert layer(grid[:0]).shape == (0, 2, 2)
    copied = HashEmbedding(2, strings=True, padding_idx="")
    copied.load_state_dict(layer.state_dict())
    same(copied.eval()(["a", "b"]), rows[[2, 0]])


@pytest.mark.parametrize("options", [{}, {"capacity": 20}, {"max_capacity": 20}])
def test_bags_of_strings_are_those_of_their_numbers(options):
    bag = HashEmbeddingBag(2, "sum", strings=True, padding_idx="", seed=1, **options)
    single = HashEmbedding(2, strings=True, seed=1)
    words, offsets = ["b", "", "a", "b", "c"], torch.tensor([0, 3, 3])
    weights = torch.tensor([1.0, 5.0, 2.0, 3.0, 4.0])
    rows = single(words).detach() * weights[:, None]
    wanted = torch.stack([rows[0] + rows[2], torch.zeros(2), rows[3] + rows[4]])
    for training in (True, False):
        torch.testing.assert_close(bag.train(training)(words, offsets, weights).detach(), wanted)
    assert len(bag) == 3


@pytest.mark.parametrize("options", [{}, {"capacity": 20}, {"max_capacity": 20}])
def test_copies_pickles_and_state_dicts_are_independent(options):
    layer = HashEmbedding(2, seed=1, **options)
    ids = torch.arange(10)
    rows = layer(ids).detach().clone()
    saved = io.BytesIO()
    torch.save(layer.state_dict(), saved)
    saved.seek(0)
    loaded = HashEmbedding(2, seed=2, **options)
    loaded.load_state_dict(torch.load(saved, weights_only=True))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
        same(other.eval()(ids), rows)
        other.train()
        fresh = other(torch.tensor([50]))
        assert len(other) == 11
        assert len(layer) == 10
        same(fresh.detach(), HashEmbedding(2, seed=1)(torch.tensor([50])).detach())
    del other
    same(layer.eval()(ids), rows)


def test_a_state_that_does_not_fit_changes_nothing():
    layer = HashEmbedding(2, seed=1)
    rows = layer(torch.tensor([1])).detach().clone()
    other = HashEmbedding(3, seed=1)
    other(torch.tensor([1, 2]))
    for wrong in (other, HashEmbedding(2, strings=True)):
        with pytest.raises((ValueError, RuntimeError), match="state_dict"):
            layer._rows.restore(wrong._rows.state())
    assert len(layer) == 1
    same(layer.eval()(torch.tensor([1])), rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim: expected an int of 1 or more, got 0"),
        ({"capacity": 4, "max_capacity": 4}, "got both"),
        ({"capacity": 0}, "capacity: expected 1 or more rows, got 0"),
        ({"eviction": "fifo", "max_capacity": 4}, 'eviction: expected "lru", "lfu" or "score"'),
        ({"init": "xavier"}, 'init: expected "uniform", "normal", "zeros" or a function'),
        ({"init": lambda ids: torch.zeros(1, 1)}, r"init: expected a function that returns shape"),
        ({"max_norm": -1.0}, "max_norm: expected more than 0, got -1.0"),
        ({"max_norm": math.nan}, "max_norm: expected more than 0, got nan"),
        ({"seed": 1.5}, "seed: expected an int, got float"),
        ({"oov": [1.0]}, r"oov: expected a number or 2 numbers, got shape \(1,\)"),
        ({"admit_after": 0}, "admit_after: expected 1 or more sightings, got 0"),
        ({"admit_probability": 0.0}, "admit_probability: expected more than 0 and at most 1"),
        ({"padding_idx": "x"}, "padding_idx: expected an int without strings=True, got 'x'"),
        ({"padding_idx": 1.5}, "padding_idx: expected an int, got float"),
        ({"padding_idx": 2**63}, "padding_idx: expected a number that int64 holds, got 9223"),
        ({"padding_idx": b"", "strings": True}, "padding_idx: expected a str with strings=True"),
        ({"dtype": torch.int64}, "dtype: expected a float dtype of torch"),
        ({"dims": 3}, "dims: no such option; expected one of capacity,"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        HashEmbedding(**{"dim": 2, **options})(torch.tensor([1, 2]))
