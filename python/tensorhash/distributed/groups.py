"""Finds the process group for a table's messages: the caller's, or a gloo group with its ranks.

Tables are in CPU memory, which nccl cannot send.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed as dist

# All tables of a group share one gloo group, because each one connects every two ranks. Both
# references are weak: a group that outlives `destroy_process_group` has threads at process exit.
_BESIDE: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def usable_group(process_group: Any) -> Any:
    """A group of the same ranks that can send CPU memory. Collective if it must be made."""
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(
            "process_group: torch.distributed is not initialised; start the program with torchrun "
            "and call torch.distributed.init_process_group('gloo') first"
        )
    group = dist.group.WORLD if process_group is None else process_group
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(
            f"process_group: expected a torch.distributed group that includes this process, "
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
    # Torch versions that allow unsorted groups have sort_ranks; older ones always sort.
    order = {"sort_ranks": False} if ranks != sorted(ranks) else {}
    # Local synchronization: processes outside of the group do not call this.
    return dist.new_group(ranks, timeout_of(group), "gloo", use_local_synchronization=True, **order)


def timeout_of(group: Any) -> Any:
    """The group's timeout; None (torch's default) if the back end does not tell it."""
    device = dist.get_backend_config(group).partition(":")[0]
    try:
        return group._get_backend(torch.device(device)).options._timeout
    except (AttributeError, RuntimeError):
        return None
