"""The rows of an embedding over the ranks of a process group: each rank owns some of the ids.

A batch sends its distinct ids to their owners in one exchange and gets the rows back in another;
a step sends the gradients in a third. Before each, the ranks agree on sizes and errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from tensorhash import _core
from tensorhash._frameworks import framework
from tensorhash.distributed import DistributedHashMap, checkpoint
from tensorhash.distributed.batch import Batch, every_row
from tensorhash.distributed.calls import Arrived, attempt, deliver
from tensorhash.distributed.exchange import Exchange
from tensorhash.distributed.messages import Column
from tensorhash.hash_map import HashMap
from tensorhash.torch.embedding._ops import to_numpy
from tensorhash.torch.embedding.table_rows import TableRows, distinct_ids


class DistributedRows(TableRows):
    """TableRows with their ids spread over ranks. `table` holds those that this rank owns."""

    def __init__(
        self, exchange: Exchange, max_norm: tuple[float, float] | None, *shared: Any
    ) -> None:
        self.exchange = exchange
        super().__init__(None, "lru", max_norm, *shared)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "DistributedHashEmbedding: a process group cannot be copied; use save() and load()"
        )

    def read(self, ids: torch.Tensor, oov: torch.Tensor) -> torch.Tensor:
        distinct, inverse = distinct_ids(ids)
        rows, found = self._ask("read", distinct, None, self._read_own)
        rows = torch.where(found[:, None], rows, oov)
        return rows[inverse]

    def _first_rows(self, ids: torch.Tensor) -> torch.Tensor:
        """Of strings, the first word of the key names them, as in a HashEmbedding."""
        return self.first.rows(ids, to_numpy(ids if ids.ndim == 1 else ids[:, 0]))

    def _read_own(
        self, ids: torch.Tensor, counts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.table.contains(ids)
        return TableRows.read(self, ids, torch.zeros(self.first.dim, dtype=self.first.dtype)), found

    def train(
        self, ids: torch.Tensor, counts: torch.Tensor, scores: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        own = super().train
        return self._ask("train", ids, counts, lambda keys, sums: own(keys, sums, None))

    def require_scores(self, scores: torch.Tensor | None) -> None:
        _, error = attempt(lambda: super(DistributedRows, self).require_scores(scores))
        self.share(error, "train")

    def move(self, device: str) -> None:
        raise RuntimeError(
            f"device: a distributed embedding stays on the CPU, got {device}; "
            f"keep it there and pass ids.cpu()"
        )

    def share(self, error: BaseException | None, verb: str) -> None:
        """Raises an error of this rank's arguments on all ranks, which wait for its ids."""
        if error is not None:
            self.exchange.agree(_step(verb), error)

    def _ask(
        self,
        verb: str,
        ids: torch.Tensor,
        counts: torch.Tensor | None,
        answer: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, which have some) of distinct ids, answered by their owners."""
        step = _step(verb)
        sightings = torch.ones(len(ids), dtype=torch.int64) if counts is None else counts
        batch, arrived = self._deliver(step, ids, sightings)
        keys, weights = (_as_torch(column) for column in (arrived.keys, *arrived.values))

        def make() -> list[Column]:
            distinct, inverse = distinct_ids(keys)
            sums = torch.zeros(len(distinct), dtype=torch.int64).index_add_(0, inverse, weights)
            return [_column(part[inverse]) for part in answer(distinct, sums)]

        answers, error = attempt(make)
        self.exchange.agree(f"{step}: rows", error)
        back = self.exchange.rows(step, answers, arrived.counts, batch.counts)
        places = _as_torch(batch.rows.places)
        rows, alive = (_as_torch(part)[places] for part in back)
        return rows, alive

    def _deliver(self, step: str, ids: torch.Tensor, column: torch.Tensor) -> tuple[Batch, Arrived]:
        """Sends ids, each with a row of `column`, to their owners, in one exchange."""

        def prepare() -> tuple[Batch]:
            sent, ranks = _column(column), self.exchange.ranks
            return (every_row(self.table._key, [sent.element], ranks, ids, [sent.rows]),)

        (batch,), arrived = deliver(self.exchange, step, *attempt(prepare))
        return batch, arrived

    def gradients(self) -> tuple[torch.Tensor, torch.Tensor]:
        """As TableRows', for the ids that this rank owns: the mean over ranks. Collective."""
        ids, rows = super().gradients()
        step = _step("step")
        _, arrived = self._deliver(step, ids, rows / self.exchange.ranks)
        keys, parts = (_as_torch(column) for column in (arrived.keys, *arrived.values))
        distinct, inverse = distinct_ids(keys)
        total = torch.zeros(len(distinct), self.first.dim, dtype=self.first.dtype)
        return distinct, total.index_add_(0, inverse, parts)

    def total(self, number: float) -> float:
        """The sum of a number over all ranks. Collective."""
        sums = torch.tensor([number], dtype=torch.float64)
        dist.all_reduce(sums, group=self.exchange.group)
        return float(sums)

    # Checkpoints.

    def save(self, path: Any) -> None:
        """Writes a checkpoint, a folder with one file per rank. Collective."""
        checkpoint.save(self.exchange, self.table, path)

    def load(self, path: Any) -> None:
        """Takes the rows of a checkpoint that any number of ranks wrote. Collective."""
        loaded = DistributedHashMap.load(path, self.exchange.group)
        table: HashMap[torch.Tensor] = HashMap._of(loaded.local._table, framework("torch"))
        has_state = len(self.table._values) > 1
        wanted = self.table._values if has_state else self.table._values[:1]
        error = None
        got = table._values if has_state else table._values[:1]
        if table._key != self.table._key or got != wanted:
            error = ValueError(
                f"path: expected a checkpoint with the columns {wanted}, got {table._values}; "
                f"make the TableOptimizer that wrote it before load()"
            )
        self.exchange.agree(_step("load"), error)
        self.table = table

    def state(self) -> dict[str, Any]:
        place = {"rank": self.exchange.rank, "ranks": self.exchange.ranks}
        return {**super().state(), **place}

    def restore(self, state: dict[str, Any]) -> None:
        place = self.exchange.rank, self.exchange.ranks
        got = state.get("rank"), state.get("ranks")
        if got != place:
            raise ValueError(
                f"state_dict: expected that of rank {place[0]} of {place[1]}, got rank {got[0]} of "
                f"{got[1]}; save() writes checkpoints that any number of ranks loads"
            )
        super().restore(state)


def _step(verb: str) -> str:
    return f"DistributedHashEmbedding ({verb})"


def _column(rows: torch.Tensor) -> Column:
    """Rows to send."""
    held = _core.Tensor.wrap(rows.detach().contiguous(), "rows")
    return Column((held.dtype, held.shape[1:]), rows=held)


def _as_torch(rows: _core.Tensor) -> torch.Tensor:
    return torch.from_dlpack(rows)
