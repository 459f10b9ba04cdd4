"""A rank's batch, grouped by owner: all rows, or each key once if many are equal.

The core groups and checks. Bad arguments raise the table's own errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tensorhash import _core
from tensorhash._types import Element
from tensorhash.distributed.messages import Column


class Batch:
    """The rows of a batch for each owner; `counts[r]` of them belong to rank r."""

    def __init__(self, rows: _core.RankBatch, elements: Sequence[Element]) -> None:
        """`elements` are those of the keys and of the columns that travel."""
        #: The core's batch: it packs rows, and brings answers back to the caller's order.
        self.rows = rows
        self.elements = elements
        self.counts = rows.counts

    def columns(self) -> list[Column]:
        """Keys, then value columns, to be packed."""
        return [
            Column(element, pack=partial(self.rows.pack, number))
            for number, element in enumerate(self.elements)
        ]


def once(
    key: Element,
    values: Sequence[Element],
    ranks: int,
    rows: Any,
    columns: Sequence[Any] = (),
    reduce: Sequence[str] = (),
) -> Batch:
    """If many keys are equal, each key once: `reduce` joins their values before they travel."""
    made = _core.RankBatch.grouped(key, list(values), ranks, rows, columns, list(reduce))
    return Batch(made, [key, *values])


def every_row(
    key: Element, values: Sequence[Element], ranks: int, rows: Any, columns: Sequence[Any]
) -> Batch:
    """All rows, including equal keys."""
    made = _core.RankBatch.grouped(key, list(values), ranks, rows, columns)
    return Batch(made, [key, *values])


def question(
    key: Element, values: Sequence[Element], ranks: int, rows: Any, defaults: Sequence[Any]
) -> Batch:
    """The keys of a `get`, each at least once, and what absent ones read as."""
    return Batch(_core.RankBatch.asked(key, list(values), ranks, rows, defaults), [key])
