"""Parses arguments that are numbers, words or shapes. Errors name the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tensorhash._types import ShapeLike


def integer(value: Any, argument: str, most: int | None = 2**31 - 1) -> int:
    """A 64-bit int, from any integer type.

    The core checks its own limits; `most`, the upper limit, is for the message about a number that
    does not fit 64 bits. With most=None any int passes, and the caller checks it.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument}: expected an int, got {type(value).__name__}") from None
    if most is not None and not -(2**63) <= number < 2**63:
        bound = f"at most {most}" if number > 0 else "0 or more"
        raise ValueError(f"{argument}: expected {bound}, got {number}")
    return number


def optional_integer(value: Any, argument: str, most: int | None = 2**31 - 1) -> int | None:
    """`integer`, or None."""
    return None if value is None else integer(value, argument, most)


def position(index: Any, length: int, argument: str) -> int:
    """A non-negative index; negative ones count from the end. IndexError outside of `length`."""
    number = integer(index, argument, None)
    if not -length <= number < length:
        raise IndexError(f"{argument}: expected {-length} <= {argument} < {length}, got {number}")
    return number % length


def number(value: Any, argument: str) -> float:
    """A float, from any real number. An int too large for a float becomes infinity."""
    is_text = isinstance(value, (bool, str, bytes))
    if is_text or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{argument}: expected a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError):  # arrays of several numbers have __float__, too
        raise TypeError(f"{argument}: expected a number, got {value!r}") from None


def word(value: Any, argument: str) -> str:
    """A str. The core checks which words are valid."""
    if not isinstance(value, str):
        raise TypeError(f"{argument}: expected a word, got {value!r}")
    return value


def words(reduce: str | Sequence[str]) -> list[str]:
    """`reduce` as a list of words."""
    many = [reduce] if isinstance(reduce, str) else reduce
    if not isinstance(many, (list, tuple)) or not all(isinstance(one, str) for one in many):
        raise TypeError(f"reduce: expected a word, or a list of one per column, got {reduce!r}")
    return list(many)


def require_one_of(value: Any, argument: str, *choices: str) -> None:
    """ValueError unless `value` is one of the words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{argument}: expected {one_of(choices)}, got {value!r}")


def one_of(choices: Iterable[str]) -> str:
    """ "a", "b" or "c", for a message."""
    *most, last = (f'"{choice}"' for choice in choices)
    return f"{', '.join(most)} or {last}"


def parse_shape(shape: ShapeLike, argument: str) -> tuple[int, ...]:
    """An element shape: 3, (3,), [3] and () are all legal."""
    try:
        extents = shape if hasattr(shape, "__len__") else (shape,)
        numbers = tuple(operator.index(extent) for extent in extents)
    except TypeError:
        raise TypeError(f"{argument}: expected an int or a tuple of ints, got {shape!r}") from None
    for extent in numbers:
        if not -(2**63) <= extent < 2**63:
            raise ValueError(f"{argument}: expected extents that fit 64 bits, got {extent}")
    return numbers


def element_text(element: tuple[str, Sequence[int]]) -> str:
    """An element as text, such as "int32 (3,)"."""
    return f"{element[0]} {tuple(element[1])}"


def parse_seed(seed: Any) -> int | None:
    """The seed of a table's hash function; with None the table draws a random one."""
    if seed is None:
        return None
    number = integer(seed, "seed", None)
    if not 0 <= number < 2**64:
        raise ValueError(f"seed: expected None or 0 to 2**64 - 1, got {number}")
    return number
