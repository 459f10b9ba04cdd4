"""Linear algebra on Float32 and Float64 matrices, with NumPy's LAPACK and our own LU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash.core._base import Base, as_numpy, dtype_text, is_bool
from tensorhash.core._operands import same_dtype

if TYPE_CHECKING:
    from typing_extensions import Self


def _matrix(value: Any, name: str, *, square: bool = False) -> Any:
    """A non-empty 2-D Float32 or Float64 array; TypeError or ValueError for others."""
    array = as_numpy(value, name)
    if array.dtype.name not in ("float32", "float64"):
        raise TypeError(
            f"{name}: expected Float32 or Float64, got {dtype_text(array.dtype)}; "
            f"convert with .to(o3c.float32)"
        )
    if array.ndim != 2 or 0 in array.shape or (square and array.shape[0] != array.shape[1]):
        kind = "a square matrix" if square else "a matrix"
        raise ValueError(f"{name}: expected {kind} with elements, got shape {array.shape}")
    return array


def _tall(value: Any) -> Any:
    array = _matrix(value, "A")
    if array.shape[0] < array.shape[1]:
        raise ValueError(f"A: expected rows >= columns, got shape {array.shape}")
    return array


def _right_side(matrix: Any, value: Any) -> Any:
    right = same_dtype(matrix, value, "B")
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0] or 0 in right.shape:
        raise ValueError(
            f"B: expected {matrix.shape[0]} rows, as many as the matrix has, "
            f"in one or two dimensions, got shape {right.shape}"
        )
    return right


def _is_small(left: Any, right: Any) -> bool:
    """Whether a product has a size that is common in geometry, such as 3x3 by 3xN or Nx4 by 4x4.

    Such products are summed in order, without fused multiply-add, as Open3D's wheel does for these
    sizes. So the bits are the same on every machine. The limits were measured; see decision 24.
    """
    return bool(0 < left.shape[1] <= 7 and (left.shape[0] <= 3 or right.shape[1] <= 11))


def _product(left: Any, right: Any) -> Any:
    """The product of two matrices."""
    if not _is_small(left, right):
        return np.matmul(left, right)
    with np.errstate(all="ignore"):
        total = left[:, 0, None] * right[0]
        for k in range(1, left.shape[1]):
            total += left[:, k, None] * right[k]
    return total


def _solved(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"A: expected a matrix for which this can be computed; NumPy says: {error}"
        ) from error


def packed_lu(matrix: Any) -> tuple[Any, Any]:
    """(the row that each step swapped with; L below the diagonal, U on and above it)."""
    packed = np.array(matrix)
    pivots = np.arange(len(packed))
    for column in range(len(packed)):
        pivot = column + int(np.argmax(np.abs(packed[column:, column])))
        pivots[column] = pivot
        packed[[column, pivot]] = packed[[pivot, column]]
        if packed[column, column] == 0:
            raise ValueError("A: expected a regular matrix, got a singular one without an LU form")
        packed[column + 1 :, column] /= packed[column, column]
        below = packed[column + 1 :, column, None]
        packed[column + 1 :, column + 1 :] -= below * packed[column, None, column + 1 :]
    return pivots, packed


def _diagonal(array: Any, diagonal: int) -> int:
    rows, columns = array.shape
    if not -rows < diagonal < columns:
        raise ValueError(f"diagonal: expected {1 - rows} to {columns - 1}, got {diagonal}")
    return diagonal


class LinearAlgebra(Base):
    """Products, factorisations and linear systems."""

    __slots__ = ()

    def matmul(self, other: Any) -> Self:
        """The product with a matrix of the same dtype; a vector is a matrix with one column."""
        left = self._array
        right = same_dtype(left, other)
        if left.ndim != 2 or right.ndim not in (1, 2) or left.shape[1] != right.shape[0]:
            raise ValueError(
                f"other: expected a matrix or vector with as many rows as this matrix has columns, "
                f"got {left.shape} @ {right.shape}"
            )
        return self._wrap(_product(left, right if right.ndim == 2 else right[:, None]))

    __matmul__ = matmul

    def cross(self, other: Any, axis: int = -1) -> Self:
        """The cross product of 3-vectors along `axis`; other dimensions broadcast."""
        left, right = self._array, same_dtype(self._array, other)
        if is_bool(left.dtype):
            raise TypeError("cross: expected numbers, got Bool; convert with .to(o3c.int64)")
        for name, array in (("self", left), ("other", right)):
            if not -array.ndim <= axis < array.ndim or array.shape[axis] != 3:
                raise ValueError(f"{name}: expected 3 along axis {axis}, got shape {array.shape}")
        (a, b, c), (x, y, z) = np.moveaxis(left, axis, 0), np.moveaxis(right, axis, 0)
        with np.errstate(all="ignore"):
            parts = (b * z - c * y, c * x - a * z, a * y - b * x)
        return self._wrap(np.stack(parts, axis=axis))

    def det(self) -> float:
        """The determinant of a square matrix."""
        return float(np.linalg.det(_matrix(self, "A", square=True)))

    def inv(self) -> Self:
        """The inverse of a square matrix."""
        return self._wrap(_solved(np.linalg.inv, _matrix(self, "A", square=True)))

    def solve(self, B: Any) -> Self:
        """Solves A X = B for X, where A is this square matrix."""
        matrix = _matrix(self, "A", square=True)
        return self._wrap(_solved(np.linalg.solve, matrix, _right_side(matrix, B)))

    def lstsq(self, B: Any) -> Self:
        """X that minimises |A X - B|, where A is this matrix, of full rank, rows >= columns."""
        matrix = _tall(self)
        right = _right_side(matrix, B)
        found, _, rank, _ = _solved(lambda: np.linalg.lstsq(matrix, right, rcond=None))
        if rank < matrix.shape[1]:
            raise ValueError(f"A: expected full rank {matrix.shape[1]}, got rank {rank}")
        return self._wrap(found)

    def svd(self) -> tuple[Self, Self, Self]:
        """(U, S, VT) with A = U diag(S) VT; U and VT are square, S descends. Rows >= columns."""
        u, s, vt = map(self._wrap, _solved(np.linalg.svd, _tall(self)))
        return u, s, vt

    def lu(self, permute_l: bool = False) -> tuple[Self, Self, Self]:
        """(P, L, U) with A = P L U; with `permute_l` the second is P L."""
        pivots, packed = packed_lu(_matrix(self, "A", square=True))
        order = np.arange(len(packed))
        for step, pivot in enumerate(pivots.tolist()):
            order[[step, pivot]] = order[[pivot, step]]
        permutation = np.zeros_like(packed)
        permutation[order, np.arange(len(packed))] = 1
        lower = np.tril(packed, -1) + np.eye(len(packed), dtype=packed.dtype)
        if permute_l:
            rows = np.empty_like(lower)
            rows[order] = lower
            lower = rows
        return self._wrap(permutation), self._wrap(lower), self._wrap(np.triu(packed))

    def lu_ipiv(self) -> tuple[Self, Self]:
        """(pivots, L and U in one matrix). Row i was swapped with row pivots[i] - 1."""
        pivots, packed = packed_lu(_matrix(self, "A", square=True))
        return self._wrap(pivots + 1), self._wrap(packed)

    def _triangle_source(self, diagonal: int) -> Any:
        if self._array.ndim != 2:
            raise ValueError(f"A: expected a matrix, got shape {self._array.shape}")
        _diagonal(self._array, diagonal)
        return self._array

    def triu(self, diagonal: int = 0) -> Self:
        """The elements on and above a diagonal, zeros below; diagonals > 0 lie to the right."""
        return self._wrap(np.triu(self._triangle_source(diagonal), diagonal))

    def tril(self, diagonal: int = 0) -> Self:
        """The elements on and below a diagonal, zeros above."""
        return self._wrap(np.tril(self._triangle_source(diagonal), diagonal))

    def triul(self, diagonal: int = 0) -> tuple[Self, Self]:
        """(upper triangle with the diagonal, lower triangle with ones on the diagonal)."""
        source = self._triangle_source(diagonal)
        lower = np.tril(source, diagonal - 1)
        rows, columns = np.indices(source.shape)
        lower[columns - rows == diagonal] = 1
        return self._wrap(np.triu(source, diagonal)), self._wrap(lower)
