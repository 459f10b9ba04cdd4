"""Rows of integers from any framework, as the core reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash._arrays import Framework, is_number, take_array
from tensorhash._lists import array_of
from tensorhash._table import ArrayLike


def take_rows(array: ArrayLike, argument: str, home: Framework) -> tuple[Any, Framework]:
    """(what the core reads, the framework of the results); lists are int64 and results `home`'s."""
    taken = take_array(array, None, argument)
    if taken is not None:
        return taken
    if is_number(array):
        raise ValueError(f"{argument}: expected rows of integers, got the number {array}")
    return array_of(array, "int64", argument) if len(array) else np.empty(0, np.int64), home
