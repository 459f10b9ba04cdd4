"""Parses arguments of kernel maps: numbers per axis, and rows with the batch in column 0."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from tensorhash._arguments import require_one_of
from tensorhash._frameworks import NUMPY, Framework
from tensorhash._types import ArrayLike
from tensorhash.coords._rows import is_sequence, take_rows, with_axes


def numbers_per_axis(value: Any, axes: int | None, argument: str) -> list[int]:
    """One int per axis, from a sequence, or from one int for all axes if `axes` is known."""
    try:
        several = is_sequence(value)
        numbers = [operator.index(number) for number in (value if several else [value])]
    except TypeError:
        kind = "an int or a sequence of ints" if axes else "a sequence of ints"
        raise TypeError(f"{argument}: expected {kind}, got {value!r}") from None
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"{argument}: expected numbers that fit 64 bits, got {number}")
    if several:
        return numbers
    if axes is None:
        raise TypeError(f"{argument}: expected a sequence of ints, one per axis, got {value!r}")
    return numbers * axes


def axes_of(rows: Any) -> int:
    """The number of spatial axes of coordinates; 0 for other shapes, which the core refuses."""
    shape = tuple(getattr(rows, "shape", ()))
    return max(shape[1] - 1, 0) if len(shape) == 2 else 0


def require_batch_column(
    rows: Any,
    per_axis: Any,
    argument: str,
    source: Framework,
    axes_are: str = "axes of kernel_size",
) -> None:
    """ValueError if the batch column is missing: one column per number in `per_axis`."""
    shape = tuple(getattr(rows, "shape", ()))
    if len(shape) != 2 or not is_sequence(per_axis) or len(per_axis) != shape[1]:
        return
    pad = "torch.nn.functional.pad({}, (1, 0))" if source.name == "torch" else ""
    pad = pad or "np.pad({}, ((0, 0), (1, 0)))"
    raise ValueError(
        f"{argument}: expected shape (N, {shape[1] + 1}), the batch in column 0 and then the "
        f"{shape[1]} {axes_are}, got {shape}: there is no batch column; "
        f"{pad.format(argument)} adds batch 0"
    )


def take_both(
    in_coords: ArrayLike, out_coords: ArrayLike, wanted: Iterable[Any], home: Framework = NUMPY
) -> tuple[Any, Any, Framework]:
    """(in rows, out rows, framework of the results): that of the first argument not a list."""
    rows_out, home = take_rows(out_coords, "out_coords", home)
    rows_in, source = take_rows(in_coords, "in_coords", home)
    # An empty list gets the axes of the other rows, or of the numbers per axis.
    axes = axes_of(rows_in) or axes_of(rows_out)
    like = [0] * axes if axes else next(filter(is_sequence, wanted), 0)
    return with_axes(rows_in, like), with_axes(rows_out, like), source


def require_duplicates(duplicates: Any) -> None:
    """ValueError unless `duplicates` is "error" or "first"."""
    require_one_of(duplicates, "duplicates", "error", "first")


def require_strategy(strategy: Any) -> None:
    """TypeError unless `strategy` is a str or None. The core checks the word."""
    if not (strategy is None or isinstance(strategy, str)):
        raise TypeError(f"strategy: expected a str or None, got {type(strategy).__name__}")
