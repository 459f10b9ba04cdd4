"""Run by torchrun for test_torch_embedding_distributed.py: trains rows over ranks, and saves them.

usage: torch_embedding_ranks.py FOLDER STEPS [KILL_AT]
"""

import os
import pathlib
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import tensorhash
from tensorhash.torch import DistributedHashEmbedding, TableOptimizer
from tensorhash.torch.embedding import distributed_rows

WIDTH, ROWS = 4, 24  # rows of a batch over all ranks
WORD = "user-\u00fc-{}"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        how = {"seed": 3, "dtype": torch.float64}
        self.rows = DistributedHashEmbedding(WIDTH, padding_idx=0, **how)
        self.words = DistributedHashEmbedding(WIDTH, strings=True, padding_idx="", **how)
        self.dense = torch.nn.Linear(WIDTH, 1, dtype=torch.float64)
        torch.nn.init.constant_(self.dense.weight, 0.5)
        torch.nn.init.zeros_(self.dense.bias)

    def forward(self, ids, words):
        return self.dense(self.rows(ids) + self.words(words))


def batch_of(step, rank, ranks):
    random = torch.Generator().manual_seed(step)
    ids = torch.randint(0, 60 + step, (ROWS,), generator=random) * (2**40) - 2**41
    ids[::5] = 0
    targets = torch.randn(ROWS, 1, generator=random, dtype=torch.float64)
    numbers = torch.randint(0, 40 + step, (ROWS,), generator=random).tolist()
    words = [WORD.format(number) if number % 7 else "" for number in numbers]
    mine = slice(rank * ROWS // ranks, (rank + 1) * ROWS // ranks)
    return ids[mine], words[mine], targets[mine]


def calls_of(function, name, counts):
    def counting(*arguments, **options):
        counts[name] = counts.get(name, 0) + 1
        return function(*arguments, **options)

    return counting


def main():
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    kill_at = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    torch.manual_seed(0)
    model = Model()
    optimizer = TableOptimizer(model, tensorhash.optim.Adam(lr=0.05), clip_norm=2.0)
    parallel = DistributedDataParallel(model)
    dense = torch.optim.SGD(model.dense.parameters(), lr=0.05)
    first = 0
    if (folder / "dense.pt").exists():
        saved = torch.load(folder / "dense.pt", weights_only=True)
        first = saved["step"]
        model.rows.load(folder / f"rows-{first}")
        model.words.load(folder / f"words-{first}")
        model.dense.load_state_dict(saved["dense"])
    counts = {}
    dist.all_to_all_single = calls_of(dist.all_to_all_single, "all_to_all", counts)
    for step in range(first, steps):
        if step == kill_at and rank == ranks - 1 and not restarted:
            os.kill(os.getpid(), signal.SIGKILL)
        ids, words, targets = batch_of(step, rank, ranks)
        optimizer.zero_grad()
        dense.zero_grad()
        torch.nn.functional.mse_loss(parallel(ids, words), targets).backward()
        optimizer.step()
        dense.step()
        if step == first:
            assert counts == {"all_to_all": 2 * 3}, counts  # each: ids, rows, gradients
        if step % 4 == 3:
            model.rows.save(folder / f"rows-{step + 1}")
            model.words.save(folder / f"words-{step + 1}")
            if rank == 0:
                made = {"step": step + 1, "dense": model.dense.state_dict()}
                torch.save(made, folder / "dense.tmp")
                os.replace(folder / "dense.tmp", folder / "dense.pt")
            dist.barrier()
    check_eval(model.rows, rank)
    check_words(model.words, rank)
    check_errors(model.rows, rank, torch.tensor([1.5]), "ids: expected a torch tensor of integers")
    check_errors(model.words, rank, torch.tensor([1]), "ids: expected strings, because of strings")
    check_errors(model.words, rank, ["a", None], "strings: ")
    check_no_memory(model.rows, rank)
    tables = [layer._rows.table.items() for layer in (model.rows, model.words)]
    torch.save((tables, model.dense.state_dict(), first), folder / f"end-{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def check_eval(layer, rank):
    """Every rank reads the rows of all others; unknown ids and padding give zeros."""
    layer.eval()
    mine, rows = layer.ids(), layer.rows()
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (mine, rows))
    ids = torch.cat([one for one, _ in everyone])
    wanted = torch.cat([one for _, one in everyone])
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(rank))
    asked = order if rank == 0 else order[: len(order) // 2]
    assert torch.equal(layer(ids[asked]), wanted[asked])
    size = len(layer)
    unknown = torch.tensor([[-5, 0]]) if rank == 0 else torch.empty((1, 0), dtype=torch.int64)
    assert not layer(unknown).any()
    assert len(layer) == size


def check_words(layer, rank):
    """Every rank reads what any rank has trained; unknown strings and padding give zeros."""
    layer.eval()
    size, words = len(layer), [WORD.format(number) for number in range(1, 30) if number % 7]
    assert layer(words).all(1).all()
    assert not layer(["never seen", ""] if rank == 0 else []).any()
    assert len(layer) == size


def check_errors(layer, rank, wrong, sentence):
    """A wrong argument on one rank raises on all of them, and changes nothing."""
    unseen = ["unseen"] if layer.padding_idx == "" else torch.tensor([10**9])
    for training in (True, False):
        layer.train(training)
        size, given = len(layer), unseen if rank else wrong
        try:
            layer(given)
            raise AssertionError("nothing was raised")
        except (TypeError, ValueError, RuntimeError) as error:
            assert sentence in str(error), error
        assert len(layer) == size
    layer.train()
    scores = torch.ones(1, dtype=torch.float32 if rank else torch.int64)
    for given in (None, scores) if rank else (scores, scores):
        try:
            layer(unseen, scores=given)
            raise AssertionError("nothing was raised")
        except (TypeError, ValueError, RuntimeError) as error:
            assert "scores: only an embedding with max_capacity" in str(error), error
    layer.eval()
    assert not layer(unseen).any()


def check_no_memory(layer, rank):
    """A rank that cannot send its ids raises on all of them. The error is planted."""

    def fail(*_):
        raise MemoryError("planted")

    every_row, size = distributed_rows.every_row, len(layer)
    if rank == 0:
        distributed_rows.every_row = fail
    layer.train()
    try:
        layer(torch.tensor([10**9]))
        raise AssertionError("nothing was raised")
    except (MemoryError, RuntimeError) as error:
        assert "planted" in str(error), error
    distributed_rows.every_row = every_row
    assert len(layer) == size


main()
