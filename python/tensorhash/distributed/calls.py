"""The steps of a call: send rows to their owners, apply them there, return the answers.

After each step that can fail, all ranks agree on the outcome before the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash.distributed.batch import Batch, Routed
from tensorhash.distributed.exchange import Exchange
from tensorhash.distributed.routing import Bytes
from tensorhash.distributed.rows import gathered, to_bytes, to_result, to_tensor
from tensorhash.hash_map import HashMap

_MAX_ROWS = 2**31 - 1


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

    def __init__(self, keys: _core.Tensor, values: list[_core.Tensor], counts: Any) -> None:
        self.keys = keys
        self.values = values
        self.counts = counts


class Calls:
    """The collective calls of one rank's table."""

    def __init__(self, exchange: Exchange, local: HashMap) -> None:
        self._exchange = exchange
        self._table = local._table
        self._key = local._key
        self._values = local._values

    def deliver(self, step: str, prepared: Any, error: BaseException | None) -> tuple[Any, Arrived]:
        """Sends every rank's rows to their owners. `prepared` is (Routed, ...) unless `error`."""
        counts = prepared[0].counts if error is None else ()
        matrix = self._exchange.agree(step, error, counts)
        incoming = matrix.sum(axis=0)
        if incoming.max() > _MAX_ROWS:
            raise ValueError(
                f"keys: expected at most {_MAX_ROWS} rows for one rank in a call, got "
                f"{incoming.max()} for rank {incoming.argmax()}; split the call"
            )
        batch: Routed = prepared[0]
        into = matrix[:, self._exchange.rank]
        received = self._exchange.rows(step, batch.outgoing, batch.counts, into)
        keys = to_tensor(received[0], self._key, "keys")
        values = [
            to_tensor(rows, element, f"values[{i}]")
            for i, (rows, element) in enumerate(zip(received[1:], batch.elements, strict=True))
        ]
        return prepared, Arrived(keys, values, into)

    def add(
        self, step: str, batch: Batch, arrived: Arrived, apply: Callable[[Any], Any]
    ) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, new) of a call that may add keys."""
        # Allocate first: if memory runs out here, all ranks can still stop together.
        _, error = attempt(lambda: self._make_room(arrived.keys))
        self._exchange.agree(f"{step} (room)", error)
        located, error = attempt(lambda: apply(arrived.keys))
        self._exchange.agree(f"{step} (answers)", error)
        index, new = map(np.asarray, located)
        places, fresh = self._return_marked(step, batch, arrived, index, new)
        return gathered(places, batch.at), to_result(np.take(fresh, batch.at) & batch.first)

    def update(
        self, step: str, batch: Routed, arrived: Arrived, missing: str, apply: Callable[[], Any]
    ) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, -1 if skipped; found) of an optimizer's steps."""
        if missing == "insert":
            _, error = attempt(lambda: self._make_room(arrived.keys))
            self._exchange.agree(f"{step} (room)", error)
        if missing == "error":
            self._require_found(step, batch, arrived)
        located, error = attempt(apply)
        self._exchange.agree(f"{step} (answers)", error)
        index, found = map(np.asarray, located)
        if missing == "insert":
            places, there = self._return_marked(step, batch, arrived, index, found)
            return gathered(places, batch.at), gathered(there, batch.at)
        return self._located(batch, self._return(step, batch, arrived, index))

    def _require_found(self, step: str, batch: Routed, arrived: Arrived) -> None:
        """KeyError on the ranks that sent missing keys."""
        mask, error = attempt(lambda: np.asarray(self._table.contains(arrived.keys)))
        self._exchange.agree(f"{step} (look-up)", error)
        found = np.take(self._return(step, batch, arrived, mask), batch.at)
        absent = np.flatnonzero(~found)
        if len(absent):
            error = KeyError(
                f"keys: {len(absent)} rows are not in the table, the first is row {absent[0]}; "
                f'insert them first, or pass missing="skip" or "insert"'
            )
        self._exchange.agree(f"{step} (found)", error)

    def find(self, step: str, batch: Batch, arrived: Arrived) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, -1 if missing; found)."""
        located, error = attempt(lambda: self._table.find(arrived.keys))
        self._exchange.agree(f"{step} (answers)", error)
        return self._located(batch, self._return(step, batch, arrived, np.asarray(located[0])))

    def ask(
        self, step: str, batch: Batch, arrived: Arrived, apply: Callable[[Any], Any]
    ) -> np.ndarray[Any, Any]:
        """A bool mask for the rows of the batch, answered by the owners."""
        mask, error = attempt(lambda: np.asarray(apply(arrived.keys)))
        self._exchange.agree(f"{step} (answers)", error)
        return np.take(self._return(step, batch, arrived, mask), batch.at)

    def fetch(
        self, step: str, batch: Batch, arrived: Arrived, filled: list[_core.Tensor]
    ) -> list[_core.Tensor]:
        """The value columns for the rows of the batch: `filled` (the defaults), overwritten."""
        (found, values), error = attempt(lambda: self._look_up(arrived.keys), (None, None))
        self._exchange.agree(f"{step} (answers)", error)
        there = self._return(step, batch, arrived, found)
        # Only values of found keys are sent; both sides know their number from the mask.
        sizes = _sums(found, arrived.counts), _sums(there, batch.counts)
        received = self._exchange.rows(step, values, *sizes)
        place, known = batch.at, None
        if not there.all():
            place = np.take(np.where(there, np.cumsum(there) - 1, -1), batch.at)
            known = place >= 0
        for column, element, new in zip(filled, self._values, received, strict=True):
            rows = to_bytes(np.asarray(column), element)
            if known is None:
                np.take(new, place, axis=0, out=rows, mode="clip")  # mode="raise" would buffer
            else:
                rows[known] = np.take(new, place[known], axis=0)
        return filled

    def _look_up(self, keys: _core.Tensor) -> tuple[np.ndarray[Any, Any], list[Bytes]]:
        found = np.asarray(self._table.contains(keys))
        named = zip(self._table.get(keys, []), self._values, strict=True)
        columns = [to_bytes(np.asarray(column), element) for column, element in named]
        return found, columns if found.all() else [column[found] for column in columns]

    def _make_room(self, keys: _core.Tensor) -> None:
        size, capacity = self._table.size(), self._table.capacity()
        if size + keys.shape[0] <= capacity:
            return
        # Many rows may be in the table already, or repeat on several ranks: count distinct new
        # keys.
        missing = ~np.asarray(self._table.contains(keys))
        rows = to_bytes(np.asarray(keys), self._key)[missing]
        scratch = _core.HashMap(0, self._key, [], "cpu:0")
        scratch.insert(to_tensor(rows, self._key, "keys"), ())
        needed = size + scratch.size()
        if needed > capacity:
            more = capacity if capacity < 65_536 else capacity // 8
            self._table.reserve(max(needed, min(capacity + more, _MAX_ROWS)))

    def _return_marked(
        self, step: str, batch: Routed, arrived: Arrived, index: Any, mask: Any
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(places, mask) in the order sent, if all keys are in the table."""
        # Indices have 31 bits, so a complement can mark the rows where the mask is False.
        answers = self._return(step, batch, arrived, np.where(mask, index, ~index))
        return _places(batch, np.where(answers < 0, ~answers, answers)), answers >= 0

    def _located(self, batch: Routed, local: Any) -> tuple[_core.Tensor, _core.Tensor]:
        """(places, found) for the rows of the batch, from indices in the order sent."""
        return gathered(_places(batch, local), batch.at), gathered(local >= 0, batch.at)

    def _return(
        self, step: str, batch: Routed, arrived: Arrived, answers: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Returns the answers to each rank, in the order in which its batch was sent."""
        size = answers.dtype.itemsize
        out = np.ascontiguousarray(answers).view(np.uint8).reshape(len(answers), size)
        back = self._exchange.rows(step, [out], arrived.counts, batch.counts)
        return back[0].reshape(-1).view(answers.dtype)


def _places(batch: Routed, local: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """owner << 32 | index, for indices in the order sent; -1 has all bits set and stays -1."""
    places = local.astype(np.int64)
    for rank, part in enumerate(_parts(places, batch.counts)):
        part |= rank << 32
    return places


def _sums(mask: np.ndarray[Any, Any], counts: Any) -> list[int]:
    """The number of True rows of each rank."""
    return [int(np.count_nonzero(part)) for part in _parts(mask, counts)]


def _parts(array: np.ndarray[Any, Any], counts: Any) -> list[np.ndarray[Any, Any]]:
    """Views of each rank's rows: counts[r] rows for rank r."""
    return np.split(array, np.cumsum(counts)[:-1])
