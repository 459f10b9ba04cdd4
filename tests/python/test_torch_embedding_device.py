"""A HashEmbedding with its table on a device: the rows of one on the CPU.

Runs on the device of TENSORHASH_TEST_DEVICE; `make test-device` runs it on emu:0.
"""

import os

import pytest

torch = pytest.importorskip("torch")

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
            layer(ids).square().sum().backward()
            step.step()
    ids = torch.arange(-25, 25).view(10, 5)
    assert torch.equal(layers[0].eval()(ids), layers[1].eval()(ids))
    state = layers[0].state_dict()
    other = kind(3, padding_idx=4, device=DEVICE)
    other.load_state_dict(state)
    assert torch.equal(other.eval()(ids), layers[1](ids))


def test_a_collection_gives_the_bits_of_the_cpu():
    layers = [
        HashEmbeddingBagCollection(["user", "item"], 3, "sum", seed=1, device=device)
        for device in (DEVICE, "cpu")
    ]
    steps = [TableOptimizer(layer, tensorhash.optim.Adam(lr=0.1)) for layer in layers]
    values, lengths = torch.tensor([5, 6, 7, 5, 5, 6]), torch.tensor([[2, 1], [0, 3]])
    for _ in range(3):
        for layer, step in zip(layers, steps, strict=True):
            step.zero_grad()
            sum(out.square().sum() for out in layer(values, lengths).values()).backward()
            step.step()
    ours, theirs = (layer.eval()(values, lengths) for layer in layers)
    assert len(layers[0]) == 5
    assert all(torch.equal(ours[name], theirs[name]) for name in ("user", "item"))


def test_ids_of_strings_give_the_bits_of_the_cpu():
    layers = [HashEmbedding(3, seed=1, strings=True, device=device) for device in (DEVICE, "cpu")]
    words = ["b", "", "a", "b"]
    assert torch.equal(*(layer(words) for layer in layers))
    assert torch.equal(*(layer.eval()([*words, "unseen"]) for layer in layers))
