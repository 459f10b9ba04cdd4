"""Convolution maps over repeated rows: made for the distinct rows, then extended to all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import NUMPY
from tensorhash.coords._rows import as_numpy
from tensorhash.coords.kernel_map import KernelMap


class _Distinct:
    """The distinct rows of an array, in order of first occurrence."""

    def __init__(self, rows: Any) -> None:
        self.all = rows
        # Use a copy, so that the result is distinct even if another thread writes to the rows.
        parts = (as_numpy(part) for part in _core.unique(rows.copy(), True, True, False))
        self.rows, self.first, self.which = parts

    @property
    def repeated(self) -> bool:
        return len(self.rows) < len(self.all)


class Repeats:
    """The in rows and the given out rows of a convolution, which may repeat."""

    def __init__(self, rows: Any, given: Any) -> None:
        self._in = _Distinct(rows)
        self._out = None if given is None else _Distinct(given)

    @property
    def any(self) -> bool:
        """Whether any row repeats in its array."""
        return self._in.repeated or (self._out is not None and self._out.repeated)

    @property
    def rows(self) -> Any:
        """The distinct in rows."""
        return self._in.rows

    @property
    def given(self) -> Any:
        """The distinct given out rows, or None."""
        return None if self._out is None else self._out.rows

    def restored(self, out: Any, offsets: Any, made: KernelMap) -> tuple[Any, Any, KernelMap]:
        """(out rows, offsets, map) for all rows, from those for the distinct rows.

        Of equal in rows the first has the pairs. Out rows are the caller's, and equal ones have
        equal pairs. The map has no identity group.
        """
        kept = self._in if out is self._in.rows else self._out
        ins, outs, bounds = made._maps()
        ins = self._in.first[ins]
        if kept is not None:
            out, offsets = kept.all, None
            ins, outs, bounds = _for_each(kept.which, ins, outs, bounds)
        rows = len(self._in.all), len(out)
        parts = (ins, outs, bounds), rows, NUMPY, made.strategy, made.probes
        return out, offsets, KernelMap._of_parts(*parts)


def _for_each(which: Any, ins: Any, outs: Any, bounds: Any) -> tuple[Any, Any, Any]:
    """Copies each pair to every row r with which[r] == its out row. Sorts groups by r, in row."""
    order = np.argsort(which, kind="stable")
    counts = np.bincount(which)
    begins = np.cumsum(counts) - counts
    copies = counts[outs]
    pair = np.repeat(np.arange(len(outs)), copies)
    nth = np.arange(len(pair)) - np.repeat(np.cumsum(copies) - copies, copies)
    rows = order[begins[outs[pair]] + nth]
    group = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[pair]
    sorted_pairs = np.lexsort((ins[pair], rows, group))
    sizes = np.bincount(group, minlength=len(bounds) - 1)
    return ins[pair][sorted_pairs], rows[sorted_pairs], np.append(0, np.cumsum(sizes))
