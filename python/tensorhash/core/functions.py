"""Functions of `tensorhash.core`: joining, elementwise extremes and linear algebra."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorhash.core._base import as_numpy, is_float
from tensorhash.core._operands import broadcasting, same_dtype
from tensorhash.core.tensor import Tensor


def _tensor(value: Any, argument: str) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor._wrap(as_numpy(value, argument))


def concatenate(tensors: Iterable[Any], axis: int | None = 0) -> Tensor:
    """Joins tensors of one dtype along an axis. Of a single tensor, joins the rows.

    >>> concatenate([Tensor([1, 2]), Tensor([3])]).numpy()
    array([1, 2, 3])
    """
    arrays = [as_numpy(tensor, f"tensors[{i}]") for i, tensor in enumerate(tensors)]
    if not arrays:
        raise ValueError("tensors: expected at least one tensor, got none")
    if len(arrays) == 1:
        arrays = list(arrays[0])
    same = [same_dtype(arrays[0], array, f"tensors[{i}]") for i, array in enumerate(arrays)]
    try:
        return Tensor._wrap(np.concatenate(same, axis=axis or 0))
    except ValueError as error:
        raise ValueError(f"tensors: expected shapes that join along axis {axis}: {error}") from None


def append(self: Any, values: Any, axis: int | None = None) -> Tensor:
    """A copy of `self` with `values` appended along `axis`; without an axis, both flattened.

    >>> append(Tensor([1, 2]), Tensor([3])).numpy()
    array([1, 2, 3])
    """
    return _tensor(self, "self").append(values, axis)


def maximum(input: Any, other: Any) -> Tensor:
    """The elementwise maximum; dtypes must be equal. If either is NaN, `input`'s element.

    >>> maximum(Tensor([1, 5]), Tensor([3, 2])).numpy()
    array([3, 5])
    """
    left = as_numpy(input, "input")
    right = broadcasting(left, same_dtype(left, other))
    return Tensor._wrap(np.where(np.less(left, right), right, left))


def minimum(input: Any, other: Any) -> Tensor:
    """The elementwise minimum; dtypes must be equal. If either is NaN, `input`'s element.

    >>> minimum(Tensor([1, 5]), Tensor([3, 2])).numpy()
    array([1, 2])
    """
    left = as_numpy(input, "input")
    right = broadcasting(left, same_dtype(left, other))
    return Tensor._wrap(np.where(np.less(right, left), right, left))


def addmm(input: Any, A: Any, B: Any, alpha: float, beta: float) -> Tensor:
    """alpha * A @ B + beta * input, for float matrices; `input` broadcasts.

    >>> addmm(Tensor([[1.0]]), Tensor([[2.0]]), Tensor([[3.0]]), alpha=1.0, beta=10.0).numpy()
    array([[16.]])
    """
    product = _tensor(A, "A").matmul(B)
    if not is_float(product._array.dtype):
        raise TypeError(f"A: expected Float32 or Float64, got {product.dtype}")
    added = same_dtype(product._array, input, "input")
    broadcasting(product._array, added, "input")
    if np.broadcast_shapes(added.shape, product._array.shape) != product._array.shape:
        raise ValueError(f"input: expected to broadcast to {product.shape}, got {added.shape}")
    return product.mul_(alpha).add_(Tensor._wrap(added) * beta)


def matmul(A: Any, B: Any) -> Tensor:
    """The product of a matrix with a matrix or a vector.

    >>> matmul(Tensor([[1, 2], [3, 4]]), Tensor([[1], [1]])).numpy()
    array([[3],
           [7]])
    """
    return _tensor(A, "A").matmul(B)


def det(A: Any) -> float:
    """The determinant of a square matrix.

    >>> round(det(Tensor([[1.0, 2.0], [3.0, 4.0]])), 9)
    -2.0
    """
    return _tensor(A, "A").det()


def inv(A: Any) -> Tensor:
    """The inverse of a square matrix.

    >>> inv(Tensor([[2.0, 0.0], [0.0, 4.0]])).numpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return _tensor(A, "A").inv()


def solve(A: Any, B: Any) -> Tensor:
    """Solves A X = B for X, where A is a square matrix.

    >>> solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([[2.0], [8.0]])).numpy()
    array([[1.],
           [2.]])
    """
    return _tensor(A, "A").solve(B)


def lstsq(A: Any, B: Any) -> Tensor:
    """X that minimises |A X - B|, where A has full rank and rows >= columns.

    >>> lstsq(Tensor([[1.0], [1.0]]), Tensor([[1.0], [3.0]])).numpy().round(9)
    array([[2.]])
    """
    return _tensor(A, "A").lstsq(B)


def svd(A: Any) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, VT) with A = U diag(S) VT.

    >>> u, s, vt = svd(Tensor([[3.0, 0.0], [0.0, 2.0]]))
    >>> s.numpy()
    array([3., 2.])
    """
    return _tensor(A, "A").svd()


def lu(A: Any, permute_l: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """(P, L, U) with A = P L U; with `permute_l` the second is P L.

    >>> p, l, u = lu(Tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> (p @ l @ u).numpy()
    array([[0., 2.],
           [1., 0.]])
    """
    return _tensor(A, "A").lu(permute_l)


def lu_ipiv(A: Any) -> tuple[Tensor, Tensor]:
    """(pivots, L and U in one matrix). Row i was swapped with row pivots[i] - 1.

    >>> pivots, both = lu_ipiv(Tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> both.numpy()
    array([[1., 0.],
           [0., 2.]])
    """
    return _tensor(A, "A").lu_ipiv()


def triu(A: Any, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal, zeros below.

    >>> triu(Tensor([[1, 2], [3, 4]])).numpy()
    array([[1, 2],
           [0, 4]])
    """
    return _tensor(A, "A").triu(diagonal)


def tril(A: Any, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal, zeros above.

    >>> tril(Tensor([[1, 2], [3, 4]])).numpy()
    array([[1, 0],
           [3, 4]])
    """
    return _tensor(A, "A").tril(diagonal)


def triul(A: Any, diagonal: int = 0) -> tuple[Tensor, Tensor]:
    """(upper triangle with the diagonal, lower triangle with ones on the diagonal).

    >>> upper, lower = triul(Tensor([[1, 2], [3, 4]]))
    >>> lower.numpy()
    array([[1, 0],
           [3, 1]])
    """
    return _tensor(A, "A").triul(diagonal)
