"""Functions that torch.compile leaves out of its graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def uncompiled(function: Callable[P, R]) -> Callable[P, R]:
    """As torch.compiler.disable, but does not import torch's compiler, which takes seconds.

    Only a call that is being compiled needs it, and then it is there.
    """
    disabled: Callable[P, R] | None = None

    @functools.wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        nonlocal disabled
        if not torch.compiler.is_compiling():
            return function(*arguments, **options)
        if disabled is None:
            # The graph breaks here, so this line runs outside of it, once.
            disabled = torch.compiler.disable(function)
        return disabled(*arguments, **options)

    return run
