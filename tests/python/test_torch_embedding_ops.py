"""Lookups under torch.compile and torch.export."""

import io

import pytest

torch = pytest.importorskip("torch")

import tensorhash  # noqa: E402
from tensorhash.torch import (  # noqa: E402
    HashEmbedding,
    HashEmbeddingBag,
    HashEmbeddingBagCollection,
    TableOptimizer,
)

IDS = torch.tensor([[3, 2**62], [-1, 5]])


def trained(layer, *arguments):
    with torch.no_grad():
        layer(*arguments)
    return layer.eval()


def cases():
    lengths = torch.tensor([[1, 1], [2, 0]])
    yield "embedding", trained(HashEmbedding(3, seed=1, padding_idx=5, oov=2.0), IDS), (IDS,)
    yield "parameter", trained(HashEmbedding(3, seed=1, capacity=9, max_norm=0.5), IDS), (IDS,)
    yield "bag", trained(HashEmbeddingBag(3, "mean", seed=1, padding_idx=5), IDS), (IDS,)
    collection = HashEmbeddingBagCollection(["a", "b"], 3, "sum", seed=1)
    yield "collection", trained(collection, IDS.view(-1), lengths), (IDS.view(-1), lengths)


CASES = [pytest.param(layer, given, id=name) for name, layer, given in cases()]


def flat(out):
    return torch.cat(list(out.values())) if isinstance(out, dict) else out


@pytest.mark.parametrize(("layer", "given"), CASES)
def test_eval_compiles_without_graph_breaks(layer, given):
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(flat(compiled(*given)), flat(layer(*given)))


@pytest.mark.parametrize(("layer", "given"), CASES)
def test_eval_exports(layer, given):
    program = torch.export.export(layer, given)
    assert torch.equal(flat(program.module()(*given)), flat(layer(*given)))


def test_compiled_collections_check_lengths():
    layer = HashEmbeddingBagCollection(["a", "b"], 2).eval()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    values = torch.tensor([1, 2, 3])
    assert compiled(values, torch.tensor([[2, 0], [0, 1]]))["b"].shape == (2, 2)
    for lengths in ([[2, 0], [0, 2]], [[4, 0], [0, -1]]):
        with pytest.raises(RuntimeError, match="lengths: expected the counts of all values"):
            compiled(values, torch.tensor(lengths))


def test_a_compiled_layer_sees_later_rows():
    layer = HashEmbedding(2, seed=1).eval()
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    ids = torch.tensor([1, 2])
    assert not compiled(ids).any()
    layer.train()(ids)
    layer.eval()
    assert torch.equal(compiled(ids), layer(ids))
    assert compiled(ids).all()


def test_training_breaks_the_graph_and_trains():
    torch._dynamo.reset()
    layer, free = HashEmbedding(2, seed=1), HashEmbedding(2, seed=1)
    compiled = torch.compile(layer, backend="aot_eager")
    optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=1.0))
    for _ in range(2):
        optimizer.zero_grad()
        compiled(IDS).square().sum().backward()
        optimizer.step()
    rows = free(IDS).detach()
    torch.testing.assert_close(layer.eval()(IDS), rows)  # (1 - 2)^2 = 1


def test_operators_pass_torch_s_own_check():
    layer = trained(HashEmbedding(3, seed=1), IDS)
    number = layer._rows.handle
    operators = torch.ops.tensorhash
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(
        operators.embedding_lookup, (IDS, number, 0, layer.oov_row), test_utils=checks
    )
    torch.library.opcheck(operators.embedding_find, (IDS, number, 0), test_utils=checks)
    frozen = layer.frozen()
    torch.library.opcheck(
        operators.embedding_frozen,
        (IDS, frozen.ids, frozen.rows, frozen.oov_row),
        test_utils=checks,
    )


def test_frozen_rows_serve_in_another_process(run_program, tmp_path):
    layer = trained(HashEmbedding(2, seed=1, oov=4.0, padding_idx=0), IDS)
    ids = torch.tensor([3, 7, 0, -1])
    frozen = layer.frozen()
    assert torch.equal(frozen(ids), layer(ids))
    assert torch.equal(frozen(ids.int()), layer(ids.int()))
    with pytest.raises(TypeError, match="ids: expected a torch tensor of integers, got torch.fl"):
        frozen(ids.float())
    dynamic = {"ids": {0: torch.export.Dim.DYNAMIC}}
    program = torch.export.export(frozen, (ids,), dynamic_shapes=dynamic)
    torch.export.save(program, tmp_path / "served.pt2")
    live = torch.export.export(layer, (ids,))
    torch.export.save(live, tmp_path / "live.pt2")
    printed = run_program(
        f"""
        import torch, tensorhash.torch
        served = torch.export.load({str(tmp_path / "served.pt2")!r}).module()
        print(served(torch.tensor([3, 7, 0, -1])).tolist())
        print(served(torch.tensor([-1])).tolist())
        try:
            torch.export.load({str(tmp_path / "live.pt2")!r}).module()(torch.tensor([3, 7, 0, -1]))
        except RuntimeError as error:
            print(error)
        """
    )
    lines = printed.splitlines()
    assert lines[0] == str(layer(ids).tolist())
    assert lines[1] == str(layer(ids)[3:].tolist())
    assert "export the layer's frozen() form" in lines[2]


def test_frozen_keys_may_change_in_place():
    frozen = trained(HashEmbedding(1, init=lambda ids: ids[:, None].float()), IDS).frozen()
    assert frozen(torch.tensor([3])).item() == 3
    frozen.ids[frozen.ids == 3] = 77
    assert frozen(torch.tensor([77])).item() == 3
    assert frozen(torch.tensor([3])).item() == 0
    saved = io.BytesIO()
    torch.save(frozen.state_dict(), saved)
