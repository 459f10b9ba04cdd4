"""The process group that carries a table's messages: the caller's, or a gloo group beside it.

Tables live in CPU memory, which nccl cannot send.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed as dist

# One gloo group serves all tables of a group, because each costs a connection between any two ranks.
# Torch owns both groups: one that outlives `destroy_process_group` has threads at process exit.
_BESIDE: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def usable_group(process_group: Any) -> Any:
    """A group of the same ranks that sends CPU memory. Collective if it must be made."""
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(
            "process_group: torch.distributed is not initialised; start the program with torchrun "
            "and call torch.distributed.init_process_group('gloo') first"
        )
    group = dist.group.WORLD if process_group is None else process_group
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(
            f"process_group: expected a torch.distributed group of which this process is a member, "
            f"or None for all processes, got {process_group!r}"
        )
    if "cpu:gloo" in dist.get_backend_config(group).split(","):
        return group
    beside = _BESIDE[group]() if group in _BESIDE else None
    if beside is None:
        beside = _gloo_beside(group)
        _BESIDE[group] = weakref.ref(beside)
    return beside


def _gloo_beside(group: Any) -> Any:
    ranks = dist.get_process_group_ranks(group)
    # Torch versions with unsorted groups have an option to keep the order; older ones have neither.
    order = {"sort_ranks": False} if ranks != sorted(ranks) else {}
    # Processes outside of the group do not call this: do not wait for them.
    return dist.new_group(
        ranks, _timeout_of(group), "gloo", use_local_synchronization=True, **order
    )


def _timeout_of(group: Any) -> Any:
    """The group's timeout, for the new group; None, torch's default, if the backend hides it."""
    device = dist.get_backend_config(group).partition(":")[0]
    try:
        return group._get_backend(torch.device(device)).options._timeout
    except (AttributeError, RuntimeError):
        return None
