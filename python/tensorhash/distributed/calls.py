"""The steps of a call: send rows to their owners, apply them there, return the answers.

After each step that can fail, all ranks agree on the outcome before the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from tensorhash import _core
from tensorhash.distributed.batch import Batch
from tensorhash.distributed.exchange import Exchange
from tensorhash.distributed.messages import Column, as_bytes
from tensorhash.hash_map import HashMap

_MAX_ROWS = 2**31 - 1
_INDEX = "int32", ()
_MASK = "bool", ()


def attempt(
    action: Callable[[], Any], otherwise: Any = None
) -> tuple[Any, Exception | KeyboardInterrupt | None]:
    """Returns (result, None), or (otherwise, error) for the ranks to agree on."""
    try:
        return action(), None
    except (Exception, KeyboardInterrupt) as error:
        return otherwise, error


class Arrived:
    """The rows that arrived at an owner: counts[r] rows from rank r, rank by rank."""

    def __init__(self, columns: list[_core.Tensor], counts: list[int]) -> None:
        self.keys, *self.values = columns
        self.counts = counts


class Held(NamedTuple):
    """What an owner has for the keys that arrived."""

    found: _core.Tensor
    counts: list[int]  # found keys of each rank
    indices: _core.Tensor  # of every key in the buffers; -1 if missing
    buffers: list[_core.Tensor]
    columns: list[Column]  # the values of found keys


def deliver(
    exchange: Exchange, step: str, prepared: Any, error: BaseException | None
) -> tuple[Any, Arrived]:
    """Sends every rank's rows to their owners. `prepared` is (Batch, ...) unless `error`."""
    counts = prepared[0].counts if error is None else ()
    agreed = exchange.agree(step, error, counts)
    if sum(agreed.sums) > _MAX_ROWS:
        _refuse_too_many(exchange, step, sum(agreed.for_me))
    batch: Batch = prepared[0]
    into = agreed.for_me
    return prepared, Arrived(exchange.rows(step, batch.columns(), batch.counts, into), into)


def _refuse_too_many(exchange: Exchange, step: str, rows: int) -> None:
    error = None
    if rows > _MAX_ROWS:
        error = ValueError(
            f"keys: expected at most {_MAX_ROWS} rows for one rank in a call, got {rows} for "
            f"rank {exchange.rank}; split the call"
        )
    exchange.agree(f"{step} (rows)", error)


class Calls:
    """The collective calls of one rank's table."""

    def __init__(self, exchange: Exchange, local: HashMap) -> None:
        self._exchange = exchange
        self._table = local._table
        self._key = local._key
        self._values = local._values

    def deliver(self, step: str, prepared: Any, error: BaseException | None) -> tuple[Any, Arrived]:
        """`deliver` to the ranks of the table."""
        return deliver(self._exchange, step, prepared, error)

    def add(
        self,
        step: str,
        batch: Batch,
        arrived: Arrived,
        apply: Callable[[Any], tuple[_core.Tensor, _core.Tensor]],
    ) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, new) of a call that may add keys."""
        # Allocate first: if memory runs out here, all ranks can still stop together.
        _, error = attempt(lambda: self._make_room(arrived.keys))
        self._exchange.agree(f"{step} (room)", error)
        marked = self._answer(step, lambda: _core.marked_indices(*apply(arrived.keys)))
        return batch.rows.answers(self._return(step, batch, arrived, marked, _INDEX), True)

    def update(
        self, step: str, batch: Batch, arrived: Arrived, missing: str, apply: Callable[[], Any]
    ) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, -1 if skipped; found) of an optimizer's steps."""
        if missing == "insert":
            return self.add(step, batch, arrived, lambda _: apply())
        if missing == "error":
            self._require_found(step, batch, arrived)
        index = self._answer(step, lambda: apply()[0])
        return batch.rows.answers(self._return(step, batch, arrived, index, _INDEX), False)

    def _require_found(self, step: str, batch: Batch, arrived: Arrived) -> None:
        """KeyError on the ranks that sent missing keys."""
        mask, error = attempt(lambda: self._table.contains(arrived.keys))
        self._exchange.agree(f"{step} (look-up)", error)
        found = batch.rows.mask(self._return(step, batch, arrived, mask, _MASK))
        absent = (as_bytes(found) == 0).nonzero().flatten()
        if len(absent):
            error = KeyError(
                f"keys: {len(absent)} rows are not in the table, the first is row "
                f'{int(absent[0])}; insert them first, or pass missing="skip" or "insert"'
            )
        self._exchange.agree(f"{step} (found)", error)

    def find(self, step: str, batch: Batch, arrived: Arrived) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, -1 if missing; found)."""
        index = self._answer(step, lambda: self._table.find(arrived.keys)[0])
        return batch.rows.answers(self._return(step, batch, arrived, index, _INDEX), False)

    def ask(
        self,
        step: str,
        batch: Batch,
        arrived: Arrived,
        apply: Callable[[Any], _core.Tensor],
        *,
        only_first: bool = False,
    ) -> _core.Tensor:
        """A bool mask for the rows of the batch, answered by the owners."""
        mask = self._answer(step, lambda: apply(arrived.keys))
        return batch.rows.mask(self._return(step, batch, arrived, mask, _MASK), only_first)

    def fetch(self, step: str, batch: Batch, arrived: Arrived) -> list[_core.Tensor]:
        """The value columns for the rows of the batch."""
        rank = self._exchange.rank
        held, error = attempt(lambda: self._look_up(arrived))
        # Only values of found keys are sent. This rank's own rows are read where they lie.
        out = [0 if r == rank else n for r, n in enumerate(held.counts)] if held else []
        into = self._exchange.agree(f"{step} (answers)", error, out).for_me
        there = self._masks(step, batch, arrived, held.found, out, into)
        starts = list(accumulate(held.counts, initial=0))
        received = self._exchange.rows(step, held.columns, out, into, starts)
        begin = sum(arrived.counts[:rank])
        return batch.rows.values(received, there, rank, held.indices, begin, held.buffers)

    def _look_up(self, arrived: Arrived) -> Held:
        index, found = self._table.find(arrived.keys)
        if self._table.device.startswith("cpu"):
            buffers = [self._table.value_tensor(i) for i in range(len(self._values))]
        else:
            buffers = self._table.get(arrived.keys, [])
            number = torch.arange(len(as_bytes(found)), dtype=torch.int32, device="cpu")
            index = _core.Tensor.wrap(number.masked_fill_(as_bytes(found) == 0, -1))
        rows, picks = _core.rows_where(index, True), index
        if rows.shape != index.shape:
            picks = _core.empty_rows(rows.shape[0], _INDEX)
            _core.pack_rows(index, rows, 0, rows.shape[0], picks, 0)
        columns = [
            Column(element, pack=partial(_core.pack_rows, buffer, picks))
            for element, buffer in zip(self._values, buffers, strict=True)
        ]
        return Held(found, _core.count_true(found, arrived.counts), index, buffers, columns)

    def _masks(
        self,
        step: str,
        batch: Batch,
        arrived: Arrived,
        found: _core.Tensor,
        out: list[int],
        into: list[int],
    ) -> _core.Tensor:
        """Which keys the other ranks have found. A mask is sent only if they have some of them."""

        def partly(counts: list[int], some: list[int]) -> list[int]:
            return [n if 0 < part < n else 0 for n, part in zip(counts, some, strict=True)]

        theirs = partly(batch.counts, into)
        starts = list(accumulate(arrived.counts, initial=0))
        column, mine = Column(_MASK, rows=found), partly(arrived.counts, out)
        got = self._exchange.rows(step, [column], mine, theirs, starts)[0]
        there = _core.empty_rows(sum(batch.counts) - batch.counts[self._exchange.rank], _MASK)
        at = read = 0
        for rank, rows in enumerate(batch.counts):
            if rank == self._exchange.rank:
                continue
            if theirs[rank]:
                _core.copy_rows(got, read, read + rows, there, at)
            else:
                as_bytes(there)[at : at + rows] = into[rank] > 0
            read, at = read + theirs[rank], at + rows
        return there

    def _make_room(self, keys: _core.Tensor) -> None:
        size, capacity = self._table.size(), self._table.capacity()
        if size + keys.shape[0] <= capacity:
            return
        # Many rows may be in the table already, or repeat on several ranks: count distinct new
        # keys.
        rows = _core.rows_where(self._table.find(keys)[0], False)
        missing = _core.empty_rows(rows.shape[0], self._key)
        _core.pack_rows(keys, rows, 0, rows.shape[0], missing, 0)
        scratch = _core.HashMap(0, self._key, [], "cpu:0")
        scratch.insert(missing, ())
        needed = size + scratch.size()
        if needed > capacity:
            more = capacity if capacity < 65_536 else capacity // 8
            self._table.reserve(max(needed, min(capacity + more, _MAX_ROWS)))

    def _answer(self, step: str, action: Callable[[], Any]) -> Any:
        """What this owner answers. Raises on all ranks if one cannot answer."""
        answer, error = attempt(action)
        self._exchange.agree(f"{step} (answers)", error)
        return answer

    def _return(
        self, step: str, batch: Batch, arrived: Arrived, answers: _core.Tensor, element: Any
    ) -> _core.Tensor:
        """Returns the answers to each rank, in the order in which its batch was sent."""
        column = Column(element, rows=answers)
        return self._exchange.rows(step, [column], arrived.counts, batch.counts)[0]
