"""Policies: a name or a user's function that decides which shard a key belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tensorhash import _core
from tensorhash._frameworks import to_numpy
from tensorhash._types import ArrayLike

#: "hash", "mod", or a function (keys as a NumPy array, number of shards) -> shard of each key.
Policy: TypeAlias = "str | Callable[[Any, int], ArrayLike]"


def core_policy(policy: Policy) -> Any:
    """The policy for the core: a name, or (name, function of a core tensor)."""
    if isinstance(policy, str):
        return policy
    if not callable(policy):
        raise TypeError(
            f'policy: expected "hash", "mod" or a function of (keys, shards), got {policy!r}'
        )

    def route(keys: _core.Tensor, shards: int) -> Any:
        rows = to_numpy(keys)
        answer = np.asarray(policy(rows, shards))
        if answer.shape != rows.shape[:1] or answer.dtype.kind not in "iu":
            raise ValueError(
                f"policy: expected {len(rows)} integers, one per key, "
                f"got {answer.dtype} of shape {answer.shape}"
            )
        wrong = np.flatnonzero((answer < 0) | (answer >= shards))
        if wrong.size:  # check before the cast to int32, which may change a number
            raise ValueError(
                f"policy: expected a shard from 0 to {shards - 1}, got {answer[wrong[0]]} "
                f"for row {wrong[0]}"
            )
        return np.ascontiguousarray(answer, dtype=np.int32)

    # The parentheses distinguish a function from a named policy.
    return f"{_policy_name(policy)}()", route


def _policy_name(policy: Callable[..., Any]) -> str:
    """The name for files, as a string that UTF-8 can encode."""
    name = getattr(policy, "__name__", None)
    if not isinstance(name, str):
        name = type(policy).__name__
    return name.encode(errors="backslashreplace").decode()
