"""A rank's part of an optimizer step: checks it, packs it for the owners, and applies it there."""

from __future__ import annotations

from typing import Any

from tensorhash import _core
from tensorhash._types import ArrayLike
from tensorhash.distributed.batch import every_row
from tensorhash.distributed.devices import on_host, on_host_with
from tensorhash.hash_map import HashMap


class Update:
    """The arguments of an update. Bad ones raise HashMap's errors here, before anything is sent."""

    def __init__(
        self,
        local: HashMap,
        ranks: int,
        keys: ArrayLike,
        gradients: ArrayLike,
        optimizer: Any,
        missing: Any,
        duplicates: Any,
        initial: Any,
    ) -> None:
        how = missing, duplicates, initial
        taken, self.give = local._take_update(keys, gradients, optimizer, *how)
        rows, steps, self._optimizer, self.missing, self._duplicates, start = taken
        rows, self.give = on_host_with(rows, self.give)
        steps, start = on_host(steps), on_host(start)
        # An empty table with the same columns raises the errors that the owners would raise. All
        # keys are missing there, so "error" must become "skip".
        scratch = _core.HashMap(0, local._key, local._values, "cpu:0")
        allowed = "skip" if self.missing == "error" else self.missing
        _core.update(scratch, rows, steps, self._optimizer, allowed, self._duplicates, start)
        weights = local._values[0]
        columns = [_core.Tensor.wrap(steps, "gradients", weights[0])]
        if start is not None:
            columns += _core.HashMap(0, local._key, [weights], "cpu:0").get(rows, [start])
        self.batch = every_row(local._key, [weights] * len(columns), ranks, rows, columns)
        #: The name of the step, with the settings that must be the same on every rank.
        self.step = (
            f"update({type(optimizer).__name__}{optimizer._settings()}, missing={self.missing!s}, "
            f"duplicates={self._duplicates!s}, initial={'given' if len(columns) > 1 else 'None'})"
        )

    def apply(
        self, table: _core.HashMap, keys: Any, columns: list[_core.Tensor]
    ) -> tuple[_core.Tensor, _core.Tensor]:
        """Applies the steps of the rows that arrived at this rank."""
        initial = columns[1] if len(columns) > 1 else None
        how = self._optimizer, self.missing, self._duplicates, initial
        return _core.update(table, keys, columns[0], *how)
