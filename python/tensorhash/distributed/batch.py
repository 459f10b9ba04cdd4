"""A rank's batch made ready to travel: its rows, or each key once, by owner, and the way back.

A scratch table of the same elements does the work: it refuses bad arguments in the table's own
words, and what it then holds is the batch with equal keys joined as the owner would join them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._table import Element
from tensorhash.distributed.routing import Bytes, owners
from tensorhash.distributed.rows import to_bytes


class Routed:
    """Rows by owner; `counts[r]` of them are rank r's."""

    def __init__(
        self,
        key: Element,
        ranks: int,
        keys: Bytes,
        columns: Sequence[tuple[Element, Bytes]],
        inverse: np.ndarray[Any, Any],
    ) -> None:
        #: Which of the rows that travel each row of the batch has.
        self.inverse = inverse
        #: What the columns after the keys are.
        self.elements = [element for element, _ in columns]
        owner = owners(keys, key[0], ranks)
        # Stable: among the rows of one owner the order of the batch stays.
        self._order = np.argsort(owner, kind="stable")
        self.counts = np.bincount(owner, minlength=ranks)
        #: Keys, then value columns, as they are sent.
        self.outgoing: list[Bytes] = [
            np.take(part, self._order, axis=0) for part in (keys, *(rows for _, rows in columns))
        ]

    def restore(self, answers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Answers in the order sent, put in the order before."""
        restored = np.empty_like(answers)
        restored[self._order] = answers
        return restored


class Batch(Routed):
    """The distinct keys of a batch by owner."""

    def __init__(
        self,
        key: Element,
        values: Sequence[Element],
        ranks: int,
        rows: Any,
        columns: Sequence[Any] = (),
        reduce: Sequence[str] = (),
    ) -> None:
        scratch = _core.HashMap(0, key, list(values), "cpu:0")
        if values:
            inverse, first = scratch.accumulate(rows, columns, list(reduce))
        else:
            inverse, first = scratch.insert(rows, ())
        #: Whether a row of the batch is the first with its key.
        self.first = np.asarray(first)
        distinct = scratch.size()
        keys = to_bytes(np.asarray(scratch.key_tensor())[:distinct], key)
        columns_out = [
            (element, to_bytes(np.asarray(scratch.value_tensor(i))[:distinct], element))
            for i, element in enumerate(values)
        ]
        super().__init__(key, ranks, keys, columns_out, np.asarray(inverse))


def every_row(
    key: Element, ranks: int, rows: Any, columns: Sequence[tuple[Element, Bytes]]
) -> Routed:
    """All rows of a batch by owner, those with equal keys too."""
    distinct = Batch(key, (), 1, rows)
    keys = np.take(distinct.outgoing[0], distinct.inverse, axis=0)
    return Routed(key, ranks, keys, columns, np.arange(len(keys)))
