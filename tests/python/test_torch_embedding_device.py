"""A HashEmbedding with its table on a device: the rows of one on the CPU.

Runs on the device of TENSORHASH_TEST_DEVICE; `make test-device` runs it on emu:0.
"""

import os

import pytest

torch = pytest.importorskip("torch")

import emulated_torch  # noqa: E402

import tensorhash  # noqa: E402
from tensorhash.torch import (  # noqa: E402
    HashEmbedding,
    HashEmbeddingBag,
    HashEmbeddingBagCollection,
    TableOptimizer,
)

DEVICE = os.environ.get("TENSORHASH_TEST_DEVICE", "cpu:0")
OPTIMIZERS = [
    tensorhash.optim.SGD(lr=0.1, momentum=0.9),
    tensorhash.optim.Adagrad(lr=0.1),
    tensorhash.optim.RowWiseAdagrad(lr=0.1),
    tensorhash.optim.AdamW(lr=0.1),
]

if DEVICE.startswith("emu"):
    emulated_torch.install()


def same(there, here):
    assert there.device.type == DEVICE.partition(":")[0]
    assert torch.equal(there.detach().cpu(), here)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("kind", [HashEmbedding, HashEmbeddingBag])
def test_training_gives_the_bits_of_the_cpu(kind, optimizer):
    layers = [kind(3, seed=1, padding_idx=4, device=device) for device in (DEVICE, "cpu")]
    steps = [TableOptimizer(layer, optimizer) for layer in layers]
    assert layers[0]._rows.table.device.lower() == DEVICE
    random = torch.Generator().manual_seed(0)
    for _ in range(5):
        ids = torch.randint(-20, 20, (10, 3), generator=random)
        for layer, step in zip(layers, steps, strict=True):
            step.zero_grad()
            layer(ids.to(layer.oov_row.device)).square().sum().backward()
            step.step()
    ids = torch.arange(-25, 25).view(10, 5)
    there, wanted = ids.to(DEVICE), layers[1].eval()(ids)
    same(layers[0].eval()(there), wanted)
    state = layers[0].state_dict()
    other = kind(3, padding_idx=4, device=DEVICE)
    other.load_state_dict(state)
    same(other.eval()(there), wanted)
    assert torch.equal(layers[0].to("cpu")(ids), wanted)
    same(layers[1].to(DEVICE)(there), wanted)


def test_norms_admission_and_parameters_give_the_bits_of_the_cpu():
    random = torch.Generator().manual_seed(1)
    batches = [torch.randint(-9, 9, (12,), generator=random) for _ in range(4)]
    for options in ({"max_norm": 0.2}, {"admit_after": 2, "oov": 3.0}, {"capacity": 20}):
        layers = [HashEmbedding(3, seed=1, device=one, **options) for one in (DEVICE, "cpu")]
        for ids in batches:
            same(layers[0](ids.to(DEVICE)), layers[1](ids).detach())
        same(layers[0].rows(), layers[1].rows())
        same(layers[0].eval()(batches[0].to(DEVICE)), layers[1].eval()(batches[0]))


def test_ids_of_another_device_are_refused():
    other = "cpu" if DEVICE.startswith("emu") else "meta"
    layer = HashEmbedding(2, device=DEVICE)
    ids = torch.zeros(2, dtype=torch.int64, device=other)
    with pytest.raises(RuntimeError, match=f"ids: expected a tensor on {DEVICE}, where this emb"):
        layer(ids)
    with pytest.raises(RuntimeError, match=r"ids: expected a tensor on cpu.*pass ids\.cpu\(\)"):
        HashEmbedding(2, max_capacity=5)(torch.zeros(2, dtype=torch.int64, device="meta"))


def test_a_collection_gives_the_bits_of_the_cpu():
    layers = [
        HashEmbeddingBagCollection(["user", "item"], 3, "sum", seed=1, device=device)
        for device in (DEVICE, "cpu")
    ]
    steps = [TableOptimizer(layer, tensorhash.optim.Adam(lr=0.1)) for layer in layers]
    values, lengths = torch.tensor([5, 6, 7, 5, 5, 6]), torch.tensor([[2, 1], [0, 3]])

    def bags(layer):
        return layer(values.to(layer.oov_row.device), lengths.to(layer.oov_row.device))

    for _ in range(3):
        for layer, step in zip(layers, steps, strict=True):
            step.zero_grad()
            sum(out.square().sum() for out in bags(layer).values()).backward()
            step.step()
    ours, theirs = (bags(layer.eval()) for layer in layers)
    assert len(layers[0]) == 5
    for name in ("user", "item"):
        same(ours[name], theirs[name])


def test_ids_of_strings_give_the_bits_of_the_cpu():
    layers = [HashEmbedding(3, seed=1, strings=True, device=device) for device in (DEVICE, "cpu")]
    words = ["b", "", "a", "b"]
    same(layers[0](words), layers[1](words).detach())
    same(*(layer.eval()([*words, "unseen"]) for layer in layers))
