"""The process group that carries a table's messages: the caller's, or one of gloo beside it.

Tables live in the CPU's memory, which nccl cannot send.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed as dist

# One for all tables of a group: each costs a connection between any two ranks. Torch owns both
# groups: one that outlives `destroy_process_group` runs its threads into the end of the process.
_BESIDE: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def usable_group(process_group: Any) -> Any:
    """A group of the same ranks that sends memory of the CPU. Collective where one must be made."""
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
    # Where groups can be out of order, there is an option to keep it; older versions know neither.
    order = {"sort_ranks": False} if ranks != sorted(ranks) else {}
    # Processes that are not of the group do not call this, so they must not be waited for.
    return dist.new_group(
        ranks, _timeout_of(group), "gloo", use_local_synchronization=True, **order
    )


def _timeout_of(group: Any) -> Any:
    """The group's patience, for the new one to have; None, torch's own, if the backend keeps it."""
    device = dist.get_backend_config(group).partition(":")[0]
    try:
        return group._get_backend(torch.device(device)).options._timeout
    except (AttributeError, RuntimeError):
        return None
