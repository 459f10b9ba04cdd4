"""The collectives: ranks agree on each step before it, and send rows to their owners and back.

Every step of every rank passes through `agree` first. So an error on one rank is an error on all of
them, and no rank waits for one that has given up.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from tensorhash.distributed.groups import usable_group
from tensorhash.distributed.routing import MOST_RANKS, Bytes


class Exchange:
    """The ranks of a process group, as one of them sees the others."""

    def __init__(self, process_group: Any) -> None:
        group = usable_group(process_group)
        # Torch owns the group: a table must not keep it alive after `destroy_process_group`.
        self._group = weakref.ref(group)
        self.rank: int = dist.get_rank(group)
        self.ranks: int = dist.get_world_size(group)
        self._broken = ""
        if self.ranks > MOST_RANKS:
            raise ValueError(
                f"process_group: expected at most {MOST_RANKS} ranks, got {self.ranks}"
            )

    @property
    def group(self) -> Any:
        """The process group; RuntimeError once torch has destroyed it."""
        group = self._group()
        if group is None:
            raise RuntimeError(
                f"process_group: destroyed by torch.distributed.destroy_process_group; the entries "
                f"of rank {self.rank} are sound and still there in .local; make a new table for a "
                f"new group"
            )
        return group

    @property
    def is_broken(self) -> bool:
        """Whether a collective has failed: the ranks may not all have seen the same."""
        return bool(self._broken)

    def agree(
        self, step: str, error: BaseException | None = None, numbers: Sequence[int] = ()
    ) -> np.ndarray[Any, Any]:
        """All ranks' `numbers` (at most one per rank), int64 [ranks, ranks]; unless one has failed.

        Raises on every rank if one has an error or is at another step: its own error on the rank
        that has one, elsewhere a RuntimeError that repeats it.
        """
        mine = torch.zeros(2 + self.ranks, dtype=torch.int64, device="cpu")
        mine[0] = zlib.crc32(step.encode())
        mine[1] = error is not None
        given = torch.tensor([int(n) for n in numbers], dtype=torch.int64, device="cpu")
        mine[2 : 2 + len(numbers)] = given
        everyone = [torch.empty_like(mine) for _ in range(self.ranks)]
        self._collective(step, lambda group: dist.all_gather(everyone, mine, group=group))
        table = torch.stack(everyone).numpy()
        if table[:, 1].any() or (table[:, 0] != table[0, 0]).any():
            self._explain(step, error)
        numbers_of_all: np.ndarray[Any, Any] = table[:, 2:]
        return numbers_of_all

    def _explain(self, step: str, error: BaseException | None) -> None:
        """Raises the error of `agree`; only failing calls exchange the messages."""
        text = f"{type(error).__name__}: {error}" if error is not None else ""
        reports: list[Any] = [None] * self.ranks
        self._collective(
            step, lambda group: dist.all_gather_object(reports, (step, text), group=group)
        )
        if error is not None:
            raise error
        for rank, (_, why) in enumerate(reports):
            if why:
                raise RuntimeError(f"{step}: refused on every rank, because of rank {rank}: {why}")
        others = ", ".join(f"rank {rank} {their}" for rank, (their, _) in enumerate(reports))
        raise RuntimeError(f"{step}: all ranks must make the same calls in order, got {others}")

    def rows(self, step: str, columns: Sequence[Bytes], out: Any, into: Any) -> list[Bytes]:
        """Sends out[r] rows of each column to rank r, and receives into[r] from it, rank by rank."""
        sizes = [int(n) for n in out], [int(n) for n in into]
        results: list[Bytes] = []

        def transfer(group: Any) -> None:
            # Inside the collective: to the others, a rank without memory is the same as a dead one.
            results.extend(np.empty((sum(sizes[1]), c.shape[1]), np.uint8) for c in columns)
            works = [
                dist.all_to_all_single(
                    torch.from_numpy(result),
                    torch.from_numpy(np.ascontiguousarray(column)),
                    sizes[1],
                    sizes[0],
                    group=group,
                    async_op=True,
                )
                for result, column in zip(results, columns, strict=True)
                if column.shape[1] > 0
            ]
            for work in works:
                work.wait()

        self._collective(step, transfer)
        return results

    def _collective(self, step: str, run: Callable[[Any], Any]) -> None:
        if self._broken:
            raise RuntimeError(f"{step}: {self._broken}")
        group = self.group
        try:
            # Overrides torch.set_default_device: torch's own collectives make tensors, too.
            with torch.device("cpu"):
                run(group)
        except BaseException as error:
            # The ranks are now out of step: a later collective could pair wrong messages.
            self._broken = (
                f"rank {self.rank} lost its peers in an earlier call; its own entries are sound and "
                f"still there in .local; start the group anew"
            )
            if not isinstance(error, Exception):
                raise
            raise RuntimeError(
                f"{step}: rank {self.rank} of {self.ranks} could not reach all others: {error}; "
                f"its own entries are sound and still there in .local"
            ) from error
