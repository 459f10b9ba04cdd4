"""A rank's part of an optimizer step: checked, made ready to travel, and applied by the owners."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._table import Element
from tensorhash.distributed.batch import every_row
from tensorhash.distributed.rows import to_bytes
from tensorhash.hash_map import HashMap


class Update:
    """The arguments of an update; they raise here, in HashMap's words, before anything travels."""

    def __init__(self, local: HashMap, ranks: int, optimizer: Any, *arguments: Any) -> None:
        taken, self.give = local._take_update(*arguments[:2], optimizer, *arguments[2:])
        rows, gradients, self._optimizer, self.missing, self._duplicates, initial = taken
        # An empty table of the same columns refuses what the owners would. To it all keys are new.
        scratch = _core.HashMap(0, local._key, local._values, "cpu:0")
        missing = "skip" if self.missing == "error" else self.missing
        _core.update(scratch, rows, gradients, self._optimizer, missing, self._duplicates, initial)
        weights = local._values[0]
        columns = [(weights, _bytes_of(gradients, weights, "gradients"))]
        if initial is not None:
            filled = _core.HashMap(0, local._key, [weights], "cpu:0").get(rows, [initial])[0]
            columns.append((weights, _bytes_of(filled, weights, "initial")))
        self.batch = every_row(local._key, ranks, rows, columns)
        #: What must be the same on every rank.
        self.step = (
            f"update({type(optimizer).__name__}{optimizer._settings()}, missing={self.missing!s}, "
            f"duplicates={self._duplicates!s}, initial={'given' if len(columns) > 1 else 'None'})"
        )

    def apply(self, table: _core.HashMap, keys: Any, columns: list[_core.Tensor]) -> Any:
        """The steps of the rows that came to this rank."""
        initial = columns[1] if len(columns) > 1 else None
        how = self._optimizer, self.missing, self._duplicates, initial
        return _core.update(table, keys, columns[0], *how)


def _bytes_of(array: Any, element: Element, argument: str) -> Any:
    return to_bytes(np.asarray(_core.Tensor.wrap(array, argument, element[0])), element)
