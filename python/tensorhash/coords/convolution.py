"""The output voxels of a sparse convolution, and its kernel map.

Over 400 lines, and `convolution_map` over 50 lines: most are arguments, docstrings
and examples.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorhash import _core
from tensorhash._arguments import require_one_of
from tensorhash._frameworks import NUMPY, Framework, framework_of
from tensorhash._places import Place
from tensorhash._types import Array, ArrayLike, DeviceLike
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
    padding: int | Sequence[int] | None = None,
    out_sites: str = "strided",
    spatial_shape: Sequence[int] | None = None,
    device: DeviceLike = None,
) -> tuple[Array, Array | None, KernelMap]:
    """(out coords [M, 1 + D], batch offsets int64 [B + 1], kernel map) of a sparse convolution.

    | | the output coordinates are |
    |---|---|
    | stride 1 | `coords`, in their order |
    | stride s | `stride_coords(coords, s)` |
    | `out_coords` given | `out_coords` |
    | `out_sites="reached"` | all from which the kernel sees one of `coords`, as in spconv |
    | generative | all from which the kernel sees one of the strided `coords` |
    | transposed | `out_coords`, which is required |
    | transposed, generative | all that the kernel reaches from `coords` times s |

    `padding` is that of a dense convolution: out o sees the inputs `o * stride - padding + k *
    dilation`. None centres odd kernels and starts even ones at offset 0. With `spatial_shape`, the
    shape of the input grid, made coordinates outside of the dense result are left out.

    With `stride_mode="reduce_and_stride"` the map's in rows are those of
    `stride_coords(coords, stride)`, and the kernel runs over these. The batch offsets are as in
    `stride_coords`, or None if the batches do not ascend. Repeated rows of `coords` or `out_coords`
    are a ValueError. With `duplicates="first"` only the first of equal rows of `coords` has pairs,
    and equal out rows have equal pairs.

    It runs where its arrays are, unless `device` is given, and its results are where `coords` came
    from. On a device the host reads the rows: lookups and maps are made there, sums here.

    >>> out, offsets, pairs = convolution_map([[0, 1, 1]], 3, 2, transposed=True, generative=True)
    >>> len(out), out[pairs[4][1]].tolist()
    (9, [[0, 2, 2]])
    """
    rows, given, source, place = _take(coords, out_coords, (kernel_size, stride, dilation), device)
    require_duplicates(duplicates)
    reduces = parse_stride_mode(stride_mode) is STRIDED_CONV_MODE.REDUCE_AND_STRIDE
    require_one_of(out_sites, "out_sites", "strided", "reached")
    mode = Mode(bool(generative), bool(transposed), reduces, out_sites == "reached")
    check_mode(given is not None, mode)
    layer = _Layer(rows.shape[1] - 1, kernel_size, stride, dilation, num_batches, place)
    layer.set_grid(padding, spatial_shape, mode)
    repeats = Repeats(rows, given) if duplicates == "first" else None
    out, offsets, made = _convolve_all(layer, rows, given, repeats, mode)
    if offsets is None:
        offsets = _offsets_of(out, num_batches)
    return (
        _give(out, source, place, (rows, coords), (given, out_coords)),
        None if offsets is None else _give(offsets, source, place),
        KernelMap(place.bring(made._made), source),
    )


class Mode(NamedTuple):
    """Which coordinates come out."""

    generative: bool
    transposed: bool
    reduces: bool
    reached: bool


class _Layer:
    """The parameters of a convolution, one number per axis, and the coordinates that they give."""

    def __init__(
        self,
        axes: int,
        kernel_size: Any,
        stride: Any,
        dilation: Any,
        num_batches: int | None,
        place: Place,
    ) -> None:
        self._place = place
        self.size = axis_ints(kernel_size, axes, "kernel_size")
        self.stride = axis_ints(stride, axes, "stride")
        self.dilation = axis_ints(1 if dilation is None else dilation, axes, "dilation")
        self._num_batches = num_batches
        self._own_padding = own_padding(self.size, self.dilation)
        self.padding = self._own_padding
        self.shape: list[int] | None = None

    def set_grid(self, padding: Any, spatial_shape: Any, mode: Mode) -> None:
        """Sets the padding and the shape of the dense result, where they are given."""
        axes = len(self.size)
        if padding is not None:
            self.padding = axis_ints(padding, axes, "padding", 0)
        if spatial_shape is None:
            return
        makes = mode.reached or (mode.transposed and mode.generative)
        if not makes:
            raise ValueError(
                'spatial_shape: expected None without out_sites="reached" or a generative '
                f"transposed convolution, got {spatial_shape!r}"
            )
        given = axis_ints(spatial_shape, axes, "spatial_shape")
        how = self.size, self.stride, self.dilation, self.padding, mode.transposed
        self.shape = dense_shape(given, *how)

    def strided(self, rows: Any) -> tuple[Any, Any]:
        """(strided rows, offsets). With stride 1: the same rows in the same order, and None."""
        if max(self.stride) == 1:
            return rows, None
        on = self._place.device
        return stride_coords(rows, self.stride, num_batches=self._num_batches, device=on)

    def reached(self, rows: Any) -> tuple[Any, Any]:
        """(rows, offsets) of every row plus every kernel offset."""
        back = [new - own for new, own in zip(self.padding, self._own_padding, strict=True)]
        return self._expand(rows, back)

    def seeing(self, rows: Any) -> tuple[Any, Any]:
        """(rows, offsets) of every row minus every kernel offset: where the kernel sees a row."""
        axes = zip(self.size, self.dilation, self._own_padding, self.padding, strict=True)
        return self._expand(rows, [(size - 1) * step - own - new for size, step, own, new in axes])

    def seeing_strided(self, rows: Any) -> Any:
        """The out rows, divided by the stride, from which the kernel sees a row."""
        where = self.seeing(rows)[0]
        quotients, rests = np.divmod(where[:, 1:], self.stride)
        where[:, 1:] = quotients
        return self.inside(where[(rests == 0).all(axis=1)])

    def inside(self, rows: Any) -> Any:
        """The rows inside of the dense result; all rows if its shape is not known."""
        if self.shape is None:
            return rows
        fits = (rows[:, 1:] >= 0) & (rows[:, 1:] < self.shape)
        return rows[fits.all(axis=1)]

    def pairs(self, fine: Any, coarse: Any, ratio: Any) -> KernelMap:
        start = None
        if self.padding != self._own_padding:
            fine = _moved(fine, 1, [-padding for padding in self.padding])
            start = [0] * len(self.size)
        into = self._place.put(fine, "in_coords"), self._place.put(coarse, "out_coords")
        return generate_kernel_map(*into, ratio, self.size, self.dilation, start)

    def _expand(self, rows: Any, back: Sequence[int]) -> tuple[Any, Any]:
        how = self.size, self.dilation, None, self._num_batches
        reached, offsets = expand_coords(rows, *how, device=self._place.device)
        return _moved(reached, 1, back, in_place=True), offsets


def own_padding(size: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """The padding that None stands for: it centres odd kernels; even ones start at offset 0."""
    axes = zip(size, dilation, strict=True)
    return [size // 2 * step if size % 2 else 0 for size, step in axes]


def dense_shape(
    shape: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int] | None,
    transposed: bool,
) -> list[int]:
    """The shape of the result of a dense convolution on a grid of this shape."""
    own = own_padding(size, dilation) if padding is None else padding
    axes = zip(shape, size, stride, dilation, own, strict=True)
    if transposed:
        return [max((n - 1) * s - 2 * p + (k - 1) * d + 1, 0) for n, k, s, d, p in axes]
    return [max((n + 2 * p - (k - 1) * d - 1) // s + 1, 0) for n, k, s, d, p in axes]


def _convolve_all(
    layer: _Layer, rows: Any, given: Any, repeats: Repeats | None, mode: Mode
) -> tuple[Any, Any, KernelMap]:
    """`_convolve` for rows that may repeat."""
    if repeats is None:
        return _convolve(layer, rows, given, mode)
    if not repeats.any:
        try:
            return _convolve(layer, rows, given, mode)
        except _Repeated as error:  # the rows were distinct before: another thread wrote to them
            raise ValueError(
                f"{error.argument}: expected rows that do not change, but some were written to "
                f"during this call; pass a copy"
            ) from None
    out, offsets, made = _convolve(layer, repeats.rows, repeats.given, mode)
    if mode.reduces and max(layer.stride) > 1:  # the in rows are strided voxels, all distinct
        return out, offsets, made
    return repeats.restored(out, offsets, made)


def _convolve(layer: _Layer, rows: Any, given: Any, mode: Mode) -> tuple[Any, Any, KernelMap]:
    """(out rows, offsets or None, map) for distinct rows; ValueError names repeated ones."""
    try:
        if mode.transposed:
            return _transposed(layer, rows, given)
        return _forward(layer, rows, given, mode)
    except ValueError:
        # The core's message says `in_coords`: name the argument of this call instead.
        require_distinct(rows, "coords")
        require_distinct(given, "out_coords")
        raise


def _transposed(layer: _Layer, rows: Any, given: Any) -> tuple[Any, Any, KernelMap]:
    """The map of the convolution that this one undoes, with in and out swapped."""
    require_distinct(rows, "coords")
    out, offsets = given, None
    if given is None:
        out, offsets = layer.reached(_moved(rows, layer.stride, 0))
        if layer.shape is not None:
            out, offsets = layer.inside(out), None
    return out, offsets, layer.pairs(out, rows, layer.stride).transpose()


def _forward(layer: _Layer, rows: Any, given: Any, mode: Mode) -> tuple[Any, Any, KernelMap]:
    if given is not None:
        require_distinct(given, "out_coords")
        return given, None, layer.pairs(rows, given, layer.stride)
    if mode.reached:
        out = layer.seeing_strided(rows)
        return out, None, layer.pairs(rows, out, layer.stride)
    coarse, offsets = layer.strided(rows)
    ins: Any = rows
    ratio: int | list[int] = layer.stride
    if mode.reduces and coarse is not rows:
        require_distinct(rows, "coords")
        ins, ratio = coarse, 1
    out = coarse
    if mode.generative:
        out, offsets = layer.seeing(coarse)
    return out, offsets, layer.pairs(ins, out, ratio)


def _take(
    coords: Any, out_coords: Any, numbers: Sequence[Any], device: DeviceLike
) -> tuple[Any, Any, Framework, Place]:
    """(rows, given out rows or None, framework of the results, device); rows are NumPy arrays."""
    given, home = None, NUMPY
    if out_coords is not None:
        given, home = take_rows(out_coords, "out_coords", NUMPY)
    rows, source = take_rows(coords, "coords", home)
    require_batch_column(rows, numbers[0], "coords", source)
    require_batch_column(given, numbers[0], "out_coords", source)
    # An empty list gets the axes of the other rows, or of the numbers per axis.
    axes = axes_of(rows) or axes_of(given)
    like = [0] * axes if axes else next(filter(is_sequence, numbers), 0)
    place = Place(device, source, rows, *(() if given is None else (given,)))
    place.require(rows, "coords")
    place.require(given, "out_coords")
    rows = _checked(with_axes(rows, like), None, "coords")
    if given is not None:
        given = _checked(with_axes(given, like), rows.shape[1], "out_coords")
    return rows, given, source, place


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


def check_mode(given: bool, mode: Mode) -> None:
    """ValueError if the words contradict each other; `given` says whether out_coords came."""
    if given and mode.generative:
        raise ValueError(
            "out_coords: expected None, because a generative convolution makes its own coordinates"
        )
    if mode.transposed and not mode.generative and not given:
        raise ValueError(
            "out_coords: expected the output coordinates of a transposed convolution, got None; "
            "pass them or set generative=True"
        )
    if mode.reduces and (mode.transposed or given):
        other = "a transposed convolution" if mode.transposed else "out_coords"
        raise ValueError(
            f'stride_mode: expected "stride_only" with {other}, which cannot reduce the input; '
            f"got 'reduce_and_stride'"
        )
    if mode.reached and (given or mode.generative or mode.transposed or mode.reduces):
        raise ValueError(
            'out_sites: expected "strided" with out_coords, generative, transposed or '
            "reduce_and_stride, which say what comes out; got 'reached'"
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


def require_distinct(rows: Any, argument: str) -> None:
    """ValueError that names the first row that repeats another."""
    if rows is None or not len(rows):
        return
    if _core.unique(rows, False, False, False)[0].shape[0] == len(rows):
        return
    _, first, which = (as_numpy(part) for part in _core.unique(rows, True, True, False))
    row = int(np.flatnonzero(first[which] != np.arange(len(rows)))[0])
    raise _Repeated(argument, row, int(first[which[row]]))


def _moved(rows: Any, factors: Any, back: Any, *, in_place: bool = False) -> Any:
    """The axes times `factors`, minus `back`; ValueError beyond int32, the range of kernel maps.

    Makes at most one array of the size of `rows`: none if nothing moves, or `in_place`.
    """
    axes = rows.shape[1] - 1
    scale = [1, *np.broadcast_to(factors, axes).tolist()]
    shift = [0, *np.broadcast_to(back, axes).tolist()]
    if len(rows):
        ends = [
            int(end(column)) * times - less
            for column, times, less in zip(rows.T, scale, shift, strict=True)
            for end in (np.min, np.max)
        ]
        limits = np.iinfo(np.int32)
        if not (limits.min <= min(ends) and max(ends) <= limits.max):
            raise ValueError(
                f"coords: expected output coordinates within int32, got {min(ends)} to {max(ends)}"
            )
    if all(times == 1 for times in scale) and not any(shift):
        return rows
    moved = rows if in_place else rows.copy()
    # The results fit. What overflows on the way there wraps around twice.
    moved *= np.array(scale).astype(rows.dtype)
    moved -= np.array(shift).astype(rows.dtype)
    return moved


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


def _give(array: Any, source: Framework, place: Place, *given: tuple[Any, Any]) -> Array:
    """The array in the framework `source`; the user's own array if it has the same rows."""
    for rows, original in given:
        if array is rows and framework_of(type(original)) is source:
            own: Array = original
            return own
    return place.give(_core.Tensor.wrap(np.ascontiguousarray(array), "coords"))
