"""A rank's batch made ready to travel: each key once, ordered by owner, and the way back.

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


class Batch:
    """The distinct keys of a batch by owner; `counts[r]` of them are rank r's."""

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
        #: Which distinct key each row of the batch has, and whether the row is the first with it.
        self.inverse = np.asarray(inverse)
        self.first = np.asarray(first)
        distinct = scratch.size()
        keys = to_bytes(np.asarray(scratch.key_tensor())[:distinct], key)
        owner = owners(keys, key[0], ranks)
        # Stable: among the keys of one owner the order of the batch stays.
        self._order = np.argsort(owner, kind="stable")
        self.counts = np.bincount(owner, minlength=ranks)
        columns_out = [
            to_bytes(np.asarray(scratch.value_tensor(i))[:distinct], element)
            for i, element in enumerate(values)
        ]
        #: Keys, then value columns, as they are sent.
        self.outgoing: list[Bytes] = [
            np.take(part, self._order, axis=0) for part in (keys, *columns_out)
        ]

    def restore(self, answers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Answers in the order sent, put in the order of the distinct keys."""
        restored = np.empty_like(answers)
        restored[self._order] = answers
        return restored
