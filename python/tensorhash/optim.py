"""Optimizers for `HashMap.update`. Their state lives in value columns of the table.

>>> import numpy as np, tensorhash
>>> adam = tensorhash.optim.Adam(lr=0.1)
>>> table = tensorhash.HashMap(0, "int64", (), **adam.columns("float32", (2,)))
>>> indices, found = table.update([7, 9], np.ones((2, 2), "float32"), adam, missing="insert")
>>> table.get([7])[0].round(3)
array([[-0.1, -0.1]], dtype=float32)
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from tensorhash import _core
from tensorhash._arguments import number, parse_shape
from tensorhash._arrays import take_array
from tensorhash._dtypes import parse_dtype
from tensorhash._types import Array, ArrayLike, DtypeLike, ShapeLike

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RowWiseAdagrad"]

_EXPECTED = "optimizer: expected tensorhash.optim.SGD, Adagrad, RowWiseAdagrad, Adam or AdamW"


class ValueColumns(TypedDict):
    """Keyword arguments of HashMap for several value columns."""

    value_dtypes: list[object]
    value_element_shapes: list[tuple[int, ...]]


class Optimizer:
    """The base of all optimizers. Settings such as `lr` may change between updates.

    >>> optimizer = SGD(lr=0.1)
    >>> optimizer.lr = 0.01
    >>> optimizer.columns("float32", (8,))
    {'value_dtypes': ['float32'], 'value_element_shapes': [(8,)]}
    """

    def _settings(self) -> tuple[float, ...]:
        raise TypeError(_EXPECTED)

    def _core(self) -> _core.Optimizer:
        raise TypeError(_EXPECTED)

    def columns(self, dtype: DtypeLike, shape: ShapeLike) -> ValueColumns:
        """Keyword arguments of HashMap for weights of this dtype and element shape.

        The first column holds the weights, the others the state, which starts at zero.

        >>> Adagrad().columns("float32", (8,))
        {'value_dtypes': ['float32', 'float32'], 'value_element_shapes': [(8,), (8,)]}
        """
        name, _ = parse_dtype(dtype, "dtype")
        specs = self._core().columns((name, parse_shape(shape, "shape")))
        return {
            "value_dtypes": [dtype, *(spec[0] for spec in specs[1:])],
            "value_element_shapes": [tuple(spec[1]) for spec in specs],
        }

    def values(self, weights: ArrayLike) -> list[Array]:
        """The value columns to insert for weights [N, *shape]: the weights, then zero state.

        >>> adagrad = Adagrad()
        >>> table = tensorhash.HashMap(0, "int64", (), **adagrad.columns("float32", ()))
        >>> _ = table.insert([7, 8], adagrad.values(np.float32([0.5, 1.5])))
        >>> table.get([8])
        (array([1.5], dtype=float32), array([0.], dtype=float32))
        """
        taken = take_array(weights, None, "weights")
        if taken is None:
            raise TypeError("weights: expected an array with a dtype, got a list or a number")
        rows = _core.Tensor.wrap(taken[0], "weights")
        shape = tuple(rows.shape)
        if not shape:
            raise ValueError("weights: expected rows, [N, *shape], got a scalar")
        specs = self._core().columns((rows.dtype, shape[1:]))
        return [weights, *(np.zeros((shape[0], *spec[1]), spec[0]) for spec in specs[1:])]

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class SGD(Optimizer):
    """Stochastic gradient descent as torch.optim.SGD: plain, with momentum, or Nesterov.

    Columns: weights, and with momentum the momentum buffer.

    >>> sgd = SGD(lr=0.5)
    >>> table = tensorhash.HashMap.from_items([7], np.float32([1]))
    >>> indices, found = table.update([7], np.float32([1]), sgd)
    >>> table.get([7])
    array([0.5], dtype=float32)
    """

    def __init__(
        self,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self._core().columns(("float32", ()))  # the core checks the numbers

    def _settings(self) -> tuple[float, float, float, bool]:
        return (
            number(self.lr, "lr"),
            number(self.momentum, "momentum"),
            number(self.weight_decay, "weight_decay"),
            bool(self.nesterov),
        )

    def _core(self) -> _core.Optimizer:
        return _core.Optimizer.sgd(*self._settings())


class Adagrad(Optimizer):
    """Adagrad as torch.optim.Adagrad. Columns: weights, sum of squared gradients.

    >>> adagrad = Adagrad(lr=0.5)
    >>> table = tensorhash.HashMap(0, "int64", (), **adagrad.columns("float32", ()))
    >>> indices, found = table.update([7], np.float32([2]), adagrad, missing="insert")
    >>> table.get([7])
    (array([-0.5], dtype=float32), array([4.], dtype=float32))
    """

    def __init__(
        self,
        lr: float = 1e-2,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        self.lr = lr
        self.weight_decay = weight_decay
        self.initial_accumulator_value = initial_accumulator_value
        self.eps = eps
        self._core().columns(("float32", ()))

    def _settings(self) -> tuple[float, float, float, float]:
        return (
            number(self.lr, "lr"),
            number(self.weight_decay, "weight_decay"),
            number(self.initial_accumulator_value, "initial_accumulator_value"),
            number(self.eps, "eps"),
        )

    def _core(self) -> _core.Optimizer:
        return _core.Optimizer.adagrad(*self._settings())


class RowWiseAdagrad(Adagrad):
    """Adagrad with one number per key in place of one per weight, as recommenders use it.

    Columns: weights, sum of the mean squared gradients, which has no dimensions.

    >>> adagrad = RowWiseAdagrad(lr=0.5)
    >>> table = tensorhash.HashMap(0, "int64", (), **adagrad.columns("float32", (2,)))
    >>> indices, found = table.update([7], np.float32([[1, 7]]), adagrad, missing="insert")
    >>> table.get([7])
    (array([[-0.1, -0.7]], dtype=float32), array([25.], dtype=float32))
    """

    def _core(self) -> _core.Optimizer:
        return _core.Optimizer.row_wise_adagrad(*self._settings())


class Adam(Optimizer):
    """Adam as torch.optim.Adam, with one step count per key.

    `decoupled_weight_decay` decays the weights, not the gradient: AdamW.

    Columns: weights, first moment, second moment, int64 step count.

    >>> adam = Adam(lr=0.5)
    >>> table = tensorhash.HashMap(0, "int64", (), **adam.columns("float32", ()))
    >>> indices, found = table.update([7], np.float32([2]), adam, missing="insert")
    >>> weights, first, second, steps = table.get([7])
    >>> weights.round(3), steps
    (array([-0.5], dtype=float32), array([1]))
    """

    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
    ) -> None:
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.decoupled_weight_decay = decoupled_weight_decay
        self._core().columns(("float32", ()))

    def _settings(self) -> tuple[float, float, float, float, float, bool]:
        if not isinstance(self.betas, (tuple, list)) or len(self.betas) != 2:
            raise TypeError(f"betas: expected two numbers, got {self.betas!r}")
        return (
            number(self.lr, "lr"),
            number(self.betas[0], "betas[0]"),
            number(self.betas[1], "betas[1]"),
            number(self.eps, "eps"),
            number(self.weight_decay, "weight_decay"),
            bool(self.decoupled_weight_decay),
        )

    def _core(self) -> _core.Optimizer:
        return _core.Optimizer.adam(*self._settings())


class AdamW(Adam):
    """Adam with decoupled weight decay, with the defaults of torch.optim.AdamW.

    >>> AdamW(lr=0.5).weight_decay
    0.01
    """

    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(lr, betas, eps, weight_decay, decoupled_weight_decay=True)


def require_optimizer(optimizer: Any) -> None:
    """TypeError unless `optimizer` is one of this module."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{_EXPECTED}, got {type(optimizer).__name__}")
