"""Accepts WarpConvNet's keyword names in addition to ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def also_named(**ours_by_theirs: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lets a function accept `theirs` as another name of the keyword `ours`.

    >>> @also_named(query_coords="query")
    ... def search(query): return query
    >>> search(query_coords=1), search(query=2), search(3)
    (1, 2, 3)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs:
                _rename(kwargs, ours_by_theirs, function.__name__)
            return function(*args, **kwargs)

        return call

    return decorate


def _rename(given: dict[str, Any], ours_by_theirs: dict[str, str], function: str) -> None:
    for theirs, ours in ours_by_theirs.items():
        if theirs not in given:
            continue
        if ours in given:
            raise TypeError(f"{function}: {ours} and {theirs} are the same argument, got both")
        given[ours] = given.pop(theirs)
