"""Sorts a rank's batch by owner, all rows or each key once, and finds each row's answer.

A scratch table with the same elements does the work. It raises the table's own errors for bad
arguments, and combines equal keys as the owner would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._types import Element
from tensorhash.distributed.routing import Bytes, owners
from tensorhash.distributed.rows import to_bytes


class Routed:
    """The rows of a batch, sorted by owner; `counts[r]` of them belong to rank r."""

    def __init__(
        self,
        key: Element,
        ranks: int,
        keys: Bytes,
        columns: Sequence[tuple[Element, Bytes]],
        inverse: np.ndarray[Any, Any],
    ) -> None:
        """`inverse` is, for each row of the batch, the row of `keys` with its key."""
        #: The elements of the columns after the keys.
        self.elements = [element for element, _ in columns]
        owner = owners(keys, key[0], ranks)
        # Stable, so that the rows of one owner keep the order of the batch.
        order = np.argsort(owner, kind="stable")
        self.counts = np.bincount(owner, minlength=ranks)
        sent = np.empty_like(order)
        sent[order] = np.arange(len(order))
        #: The position of each row's answer among the rows sent; `sent` itself for distinct keys.
        self.at = sent if len(inverse) == len(sent) else np.take(sent, inverse)
        #: Keys, then value columns, in the order sent.
        self.outgoing: list[Bytes] = [
            np.take(part, order, axis=0) for part in (keys, *(rows for _, rows in columns))
        ]


class Batch(Routed):
    """The distinct keys of a batch, sorted by owner."""

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
        #: Whether each row of the batch is the first with its key.
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
    """All rows of a batch sorted by owner, including equal keys."""
    distinct = Batch(key, (), 1, rows)
    keys = np.take(distinct.outgoing[0], distinct.at, axis=0)
    return Routed(key, ranks, keys, columns, np.arange(len(keys)))
