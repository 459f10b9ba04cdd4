"""The output voxels of a sparse convolution, and its kernel map."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import NUMPY, Framework, framework_of
from tensorhash._types import Array, ArrayLike
from tensorhash.coords._kernel_arguments import axes_of, require_batch_column, require_duplicates
from tensorhash.coords._repeats import Repeats
from tensorhash.coords._rows import as_numpy, is_sequence, take_rows, with_axes
from tensorhash.coords.kernel_map import KernelMap, generate_kernel_map
from tensorhash.coords.ops import axis_ints, expand_coords, stride_coords


class STRIDED_CONV_MODE(str, enum.Enum):
    """How a stride works: the kernel runs over the input voxels, or over the strided voxels.

    >>> STRIDED_CONV_MODE("reduce_and_stride") is STRIDED_CONV_MODE.REDUCE_AND_STRIDE
    True
    """

    STRIDE_ONLY = "stride_only"
    REDUCE_AND_STRIDE = "reduce_and_stride"


def convolution_map(
    coords: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    *,
    out_coords: ArrayLike | None = None,
    generative: bool = False,
    transposed: bool = False,
    stride_mode: STRIDED_CONV_MODE | str = "stride_only",
    num_batches: int | None = None,
    duplicates: str = "error",
) -> tuple[Array, Array | None, KernelMap]:
    """(out coords [M, 1 + D], batch offsets int64 [B + 1], kernel map) of a sparse convolution.

    | | the output coordinates are |
    |---|---|
    | stride 1 | `coords`, in their order |
    | stride s | `stride_coords(coords, s)` |
    | `out_coords` given | `out_coords` |
    | generative | all from which the kernel sees one of the strided `coords` |
    | transposed | `out_coords`, which is required |
    | transposed, generative | all that the kernel reaches from `coords` times s |

    With `stride_mode="reduce_and_stride"` the map's in rows are those of
    `stride_coords(coords, stride)`, and the kernel runs over these. The batch offsets are as in
    `stride_coords`, or None if the batches do not ascend. Repeated rows of `coords` or `out_coords`
    are a ValueError. With `duplicates="first"` only the first of equal rows of `coords` has pairs,
    and equal out rows have equal pairs.

    >>> out, offsets, pairs = convolution_map([[0, 1, 1]], 3, 2, transposed=True, generative=True)
    >>> len(out), out[pairs[4][1]].tolist()
    (9, [[0, 2, 2]])
    """
    rows, given, source = _take(coords, out_coords, (kernel_size, stride, dilation))
    require_duplicates(duplicates)
    reduces = parse_stride_mode(stride_mode) is STRIDED_CONV_MODE.REDUCE_AND_STRIDE
    _check_mode(given is not None, bool(generative), bool(transposed), reduces)
    layer = _Layer(rows.shape[1] - 1, kernel_size, stride, dilation, num_batches)
    how = bool(generative), bool(transposed), reduces
    repeats = Repeats(rows, given) if duplicates == "first" else None
    out, offsets, made = _convolve_all(layer, rows, given, repeats, *how)
    if offsets is None:
        offsets = _offsets_of(out, num_batches)
    return (
        _give(out, source, (rows, coords), (given, out_coords)),
        None if offsets is None else _give(offsets, source),
        KernelMap(made._made, source),
    )


class _Layer:
    """The parameters of a convolution, one number per axis, and the coordinates that they give."""

    def __init__(
        self, axes: int, kernel_size: Any, stride: Any, dilation: Any, num_batches: int | None
    ) -> None:
        self.size = axis_ints(kernel_size, axes, "kernel_size")
        self.stride = axis_ints(stride, axes, "stride")
        self.dilation = axis_ints(1 if dilation is None else dilation, axes, "dilation")
        self._num_batches = num_batches

    def strided(self, rows: Any) -> tuple[Any, Any]:
        """(strided rows, offsets). With stride 1: the same rows in the same order, and None."""
        if max(self.stride) == 1:
            return rows, None
        return stride_coords(rows, self.stride, num_batches=self._num_batches)

    def reached(self, rows: Any) -> tuple[Any, Any]:
        """(rows, offsets) of every row plus every kernel offset."""
        return expand_coords(rows, self.size, self.dilation, None, self._num_batches)

    def seeing(self, rows: Any) -> tuple[Any, Any]:
        """(rows, offsets) of every row minus every kernel offset: where the kernel sees a row."""
        # The offsets of an odd axis are symmetric; those of an even axis start at 0.
        axes = zip(self.size, self.dilation, strict=True)
        back = [(size - 1) * step if size % 2 == 0 else 0 for size, step in axes]
        reached, offsets = self.reached(rows)
        return _moved(reached, 1, back), offsets

    def pairs(self, fine: Any, coarse: Any, ratio: Any) -> KernelMap:
        return generate_kernel_map(fine, coarse, ratio, self.size, self.dilation)


def _convolve_all(
    layer: _Layer,
    rows: Any,
    given: Any,
    repeats: Repeats | None,
    generative: bool,
    transposed: bool,
    reduces: bool,
) -> tuple[Any, Any, KernelMap]:
    """`_convolve` for rows that may repeat."""
    how = generative, transposed, reduces
    if repeats is None:
        return _convolve(layer, rows, given, *how)
    if not repeats.any:
        try:
            return _convolve(layer, rows, given, *how)
        except _Repeated as error:  # the rows were distinct before: another thread wrote to them
            raise ValueError(
                f"{error.argument}: expected rows that do not change, but some were written to "
                f"during this call; pass a copy"
            ) from None
    out, offsets, made = _convolve(layer, repeats.rows, repeats.given, *how)
    if reduces and max(layer.stride) > 1:  # the in rows are strided voxels, which are distinct
        return out, offsets, made
    return repeats.restored(out, offsets, made)


def _convolve(
    layer: _Layer, rows: Any, given: Any, generative: bool, transposed: bool, reduces: bool
) -> tuple[Any, Any, KernelMap]:
    """(out rows, offsets or None, map) for distinct rows; ValueError names repeated ones."""
    try:
        if transposed:
            return _transposed(layer, rows, given)
        return _forward(layer, rows, given, generative, reduces)
    except ValueError:
        # The core's message says `in_coords`: name the argument of this call instead.
        _require_distinct(rows, "coords")
        _require_distinct(given, "out_coords")
        raise


def _transposed(layer: _Layer, rows: Any, given: Any) -> tuple[Any, Any, KernelMap]:
    """The map of the convolution that this one undoes, with in and out swapped."""
    _require_distinct(rows, "coords")
    out, offsets = given, None
    if given is None:
        out, offsets = layer.reached(_moved(rows, layer.stride, 0))
    return out, offsets, layer.pairs(out, rows, layer.stride).transpose()


def _forward(
    layer: _Layer, rows: Any, given: Any, generative: bool, reduces: bool
) -> tuple[Any, Any, KernelMap]:
    if given is not None:
        _require_distinct(given, "out_coords")
        return given, None, layer.pairs(rows, given, layer.stride)
    coarse, offsets = layer.strided(rows)
    ins: Any = rows
    ratio: int | list[int] = layer.stride
    if reduces and coarse is not rows:
        _require_distinct(rows, "coords")
        ins, ratio = coarse, 1
    out = coarse
    if generative:
        out, offsets = layer.seeing(coarse)
    return out, offsets, layer.pairs(ins, out, ratio)


def _take(coords: Any, out_coords: Any, numbers: Sequence[Any]) -> tuple[Any, Any, Framework]:
    """(rows, given out rows or None, framework of the results); the rows are NumPy arrays."""
    given, home = None, NUMPY
    if out_coords is not None:
        given, home = take_rows(out_coords, "out_coords", NUMPY)
    rows, source = take_rows(coords, "coords", home)
    require_batch_column(rows, numbers[0], "coords", source)
    require_batch_column(given, numbers[0], "out_coords", source)
    # An empty list gets the axes of the other rows, or of the numbers per axis.
    axes = axes_of(rows) or axes_of(given)
    like = [0] * axes if axes else next(filter(is_sequence, numbers), 0)
    rows = _checked(with_axes(rows, like), None, "coords")
    if given is not None:
        given = _checked(with_axes(given, like), rows.shape[1], "out_coords")
    return rows, given, source


def _checked(taken: Any, columns: int | None, argument: str) -> Any:
    rows = as_numpy(taken)
    if rows.dtype not in (np.int32, np.int64):
        raise TypeError(f"{argument}: expected int32 or int64, got {rows.dtype}")
    fits = rows.ndim == 2 and (
        3 <= rows.shape[1] <= 7 if columns is None else rows.shape[1] == columns
    )
    if not fits:
        shape = "(N, 1 + D), the batch and 2 to 6 axes" if columns is None else f"(M, {columns})"
        raise ValueError(f"{argument}: expected shape {shape}, got {rows.shape}")
    limits = np.iinfo(np.int32)
    if rows.dtype == np.int64 and len(rows):
        beyond = (rows < limits.min) | (rows > limits.max)
        if beyond.any():
            row, column = (int(n) for n in np.argwhere(beyond)[0])
            raise ValueError(
                f"{argument}: row {row}, column {column}: expected a number that fits int32, "
                f"got {rows[row, column]}"
            )
    return rows


def _check_mode(given: bool, generative: bool, transposed: bool, reduces: bool) -> None:
    if given and generative:
        raise ValueError(
            "out_coords: expected None, because a generative convolution makes its own coordinates"
        )
    if transposed and not generative and not given:
        raise ValueError(
            "out_coords: expected the output coordinates of a transposed convolution, got None; "
            "pass them or set generative=True"
        )
    if reduces and (transposed or given):
        other = "a transposed convolution" if transposed else "out_coords"
        raise ValueError(
            f'stride_mode: expected "stride_only" with {other}, which cannot reduce the input; '
            f"got 'reduce_and_stride'"
        )


def parse_stride_mode(stride_mode: Any) -> STRIDED_CONV_MODE:
    """The mode, also from its name; ValueError for other names."""
    try:
        return STRIDED_CONV_MODE(stride_mode)
    except ValueError:
        raise ValueError(
            f'stride_mode: expected "stride_only" or "reduce_and_stride", got {stride_mode!r}'
        ) from None


class _Repeated(ValueError):
    """An argument has repeated rows, but must not."""

    def __init__(self, argument: str, row: int, first: int) -> None:
        self.argument = argument
        super().__init__(
            f"{argument}: row {row} repeats row {first}; drop repeated rows, for example "
            f'with unique_coords, or pass duplicates="first"'
        )


def _require_distinct(rows: Any, argument: str) -> None:
    if rows is None or not len(rows):
        return
    if _core.unique(rows, False, False, False)[0].shape[0] == len(rows):
        return
    _, first, which = (as_numpy(part) for part in _core.unique(rows, True, True, False))
    row = int(np.flatnonzero(first[which] != np.arange(len(rows)))[0])
    raise _Repeated(argument, row, int(first[which[row]]))


def _moved(rows: Any, factors: Any, back: Any) -> Any:
    """The axes times `factors`, minus `back`; ValueError beyond int32, the range of kernel maps."""
    moved = rows.astype(np.int64)
    moved[:, 1:] = moved[:, 1:] * np.asarray(factors) - np.asarray(back)
    limits = np.iinfo(np.int32)
    if len(moved) and not (limits.min <= moved.min() and moved.max() <= limits.max):
        raise ValueError(
            f"coords: expected output coordinates within int32, got {moved.min()} to {moved.max()}"
        )
    return moved.astype(rows.dtype)


def _offsets_of(rows: Any, num_batches: int | None) -> Any:
    """The batch offsets of rows in the user's order; None if batches do not ascend."""
    batch = rows[:, 0]
    if num_batches is not None:
        stride_coords(rows, 1, num_batches=num_batches)  # raises if num_batches is too small
    if (batch[1:] < batch[:-1]).any():
        return None
    begins = np.flatnonzero(np.concatenate([[True], batch[1:] != batch[:-1]])[: len(rows)])
    # One row of each batch is enough to number the batches.
    counts = stride_coords(rows[begins], 1, num_batches=num_batches)[1]
    return np.append(begins, len(rows))[counts]


def _give(array: Any, source: Framework, *given: tuple[Any, Any]) -> Array:
    """The array in the framework `source`; the user's own array if it has the same rows."""
    for rows, original in given:
        if array is rows and framework_of(type(original)) is source:
            own: Array = original
            return own
    return source.give(_core.Tensor.wrap(np.ascontiguousarray(array), "coords"))
