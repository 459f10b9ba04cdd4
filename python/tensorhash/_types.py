"""Types for the signatures of the package: arrays, dtypes, shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

#: An array of NumPy, torch, JAX, TensorFlow or tensorhash.core; anything with `__dlpack__`; a
#: column or frame of pandas, polars or Arrow without nulls; a tuple of 1-D arrays, one per column;
#: a list.
ArrayLike: TypeAlias = Any
#: "int64", np.int64, torch.int64 or tensorhash.core.int64.
DtypeLike: TypeAlias = Any
#: 3, (3,), [3] or ().
ShapeLike: TypeAlias = Any
#: A device name, a Device or a torch.device.
DeviceLike: TypeAlias = Any

#: (dtype, element shape) of keys or of a value column.
Element: TypeAlias = tuple[str, tuple[int, ...]]

#: np.ndarray of any dtype.
NumPyArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Array(Protocol):
    """An array of NumPy, torch, JAX, TensorFlow or tensorhash.core.

    Results use the framework of the arguments, which a type checker cannot follow. These are the
    members that all frameworks share. NumPy's functions accept an `Array`.
    """

    @property
    def shape(self) -> Sequence[int]:
        """The size of each dimension."""

    @property
    def dtype(self) -> object:
        """The dtype of the elements, the framework's own."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __getitem__(self, index: Any, /) -> Array: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...  # not in JAX or TensorFlow
    def __array__(self) -> NumPyArray: ...

    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __bool__(self) -> bool: ...

    def __neg__(self) -> Array: ...
    def __invert__(self) -> Array: ...

    def __add__(self, other: Any, /) -> Array: ...
    def __radd__(self, other: Any, /) -> Array: ...
    def __sub__(self, other: Any, /) -> Array: ...
    def __rsub__(self, other: Any, /) -> Array: ...
    def __mul__(self, other: Any, /) -> Array: ...
    def __rmul__(self, other: Any, /) -> Array: ...
    def __truediv__(self, other: Any, /) -> Array: ...
    def __rtruediv__(self, other: Any, /) -> Array: ...
    def __floordiv__(self, other: Any, /) -> Array: ...

    def __and__(self, other: Any, /) -> Array: ...
    def __or__(self, other: Any, /) -> Array: ...
    def __xor__(self, other: Any, /) -> Array: ...

    def __eq__(self, other: object, /) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> Array: ...  # type: ignore[override]
    def __lt__(self, other: Any, /) -> Array: ...
    def __le__(self, other: Any, /) -> Array: ...
    def __gt__(self, other: Any, /) -> Array: ...
    def __ge__(self, other: Any, /) -> Array: ...


if TYPE_CHECKING:
    # Only for type checkers: at run time the package needs nothing but NumPy.
    from typing_extensions import TypeVar

    ArrayT = TypeVar("ArrayT", default=Array)
else:
    from typing import TypeVar

    #: The array class of a table's results, such as torch.Tensor in `HashMap[torch.Tensor]`.
    ArrayT = TypeVar("ArrayT")
