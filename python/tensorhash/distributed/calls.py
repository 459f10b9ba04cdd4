"""The steps of a call: send rows to their owners, apply them there, return the answers.

After each step that can fail, all ranks agree on the outcome before the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
        found, columns = self._answer(step, lambda: self._look_up(arrived.keys))
        there = self._return(step, batch, arrived, found, _MASK)
        # Only values of found keys are sent; both sides know their number from the mask.
        out = _core.count_true(found, arrived.counts)
        received = self._exchange.rows(step, columns, out, _core.count_true(there, batch.counts))
        return batch.rows.values(received, there)

    def _look_up(self, keys: _core.Tensor) -> tuple[_core.Tensor, list[Column]]:
        """(which keys are found, the values of those)."""
        index, found = self._table.find(keys)
        rows = _core.rows_where(index, True)
        if self._table.device.startswith("cpu"):
            buffers = [self._table.value_tensor(i) for i in range(len(self._values))]
            picks = index
            if rows.shape != index.shape:
                picks = _core.empty_rows(rows.shape[0], _INDEX)
                _core.pack_rows(index, rows, 0, rows.shape[0], picks, 0)
        else:
            buffers, picks = self._table.get(keys, []), rows
        return found, [
            Column(element, pack=partial(_core.pack_rows, buffer, picks))
            for element, buffer in zip(self._values, buffers, strict=True)
        ]

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
