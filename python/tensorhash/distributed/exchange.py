"""The collectives: ranks agree before each step, and exchange rows.

Every step starts with `agree`. So an error on one rank raises on all ranks, and no rank waits for
one that has stopped.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from tensorhash import _core
from tensorhash.distributed.groups import usable_group
from tensorhash.distributed.messages import Column, Sizes, Transfer, over_device
from tensorhash.distributed.neighbours import known_neighbours, neighbours_of

MOST_RANKS = 1 << 16  # the core routes to no more


class Agreed(NamedTuple):
    """What the ranks said when they agreed: one number per rank."""

    for_me: list[int]
    sums: list[int]


class Exchange:
    """One rank's connection to the other ranks of a process group."""

    def __init__(self, process_group: Any) -> None:
        group = usable_group(process_group)
        # A weak reference: a table must not keep the group alive after `destroy_process_group`.
        self._group = weakref.ref(group)
        given = dist.group.WORLD if process_group is None else process_group
        self._given = weakref.ref(given)  # may send from devices
        self._device: torch.device | None = None  # from which rows() sends, if not from the CPU
        self._neighbours = known_neighbours(group)
        self.rank: int = dist.get_rank(group)
        self.ranks: int = dist.get_world_size(group)
        if self.ranks > MOST_RANKS:
            raise ValueError(
                f"process_group: expected at most {MOST_RANKS} ranks, got {self.ranks}"
            )

    def sends_from(self, device: str) -> str:
        """Sends rows from a CUDA device if the caller's group has nccl for it.

        Returns words for the message of `agree`: all ranks must do the same.
        """
        given = self._given()
        if given is None or not device.startswith("cuda"):
            return ""
        if "cuda:nccl" not in dist.get_backend_config(given).split(","):
            return ""
        self._device = torch.device(device)
        return ", over nccl"

    def meet(self) -> None:
        """From now on, ranks on the same machine share memory. Collective."""

        def find(group: Any) -> None:
            self._neighbours = neighbours_of(group, self.rank, self.ranks)

        if self._device is None:
            self._collective("neighbours", find)

    @property
    def group(self) -> Any:
        """The process group; RuntimeError once torch has destroyed it."""
        group = self._group()
        if group is None:
            raise RuntimeError(
                f"process_group: destroyed by torch.distributed.destroy_process_group; the entries "
                f"of rank {self.rank} are valid and still in .local; make a new table for a "
                f"new group"
            )
        return group

    @property
    def is_broken(self) -> bool:
        """Whether a collective has failed, so that ranks may be out of step."""
        return bool(self._neighbours.broken)

    def agree(
        self, step: str, error: BaseException | None = None, numbers: Sequence[int] = ()
    ) -> Agreed:
        """Agrees on a step, and tells rank r numbers[r] and the sum of the numbers.

        If a rank has an error or is at another step, every rank raises: the rank itself its own
        error, the others a RuntimeError that quotes it.
        """
        given = [int(n) for n in numbers]
        given += [0] * (self.ranks - len(given))
        mine = [
            [zlib.crc32(step.encode()), error is not None, sum(given), for_rank]
            for for_rank in given
        ]
        theirs: list[list[int]] = []
        self._collective(step, lambda group: theirs.extend(self._swap(group, mine)))
        self._neighbours.agreed()
        steps, failed, sums, for_me = map(list, zip(*theirs, strict=True))
        if any(failed) or any(other != steps[0] for other in steps):
            self._explain(step, error)
        return Agreed(for_me, sums)

    def _swap(self, group: Any, mine: list[list[int]]) -> list[list[int]]:
        """Sends mine[r] to rank r, and returns what the ranks sent to this one."""
        if not self._neighbours.are_all:
            sent = torch.tensor(mine, dtype=torch.int64, device="cpu")
            theirs = torch.empty_like(sent)
            dist.all_to_all_single(theirs, sent, group=group)
            numbers: list[list[int]] = theirs.tolist()
            return numbers
        peers = [rank for rank in range(self.ranks) if rank != self.rank]
        for peer in peers:
            self._neighbours.post(peer, mine[peer])
        got = {peer: self._neighbours.take_numbers(peer) for peer in peers}
        return [got.get(rank, mine[rank]) for rank in range(self.ranks)]

    def _explain(self, step: str, error: BaseException | None) -> None:
        """Raises the error of `agree`. Ranks exchange error messages only here."""
        text = f"{type(error).__name__}: {error}" if error is not None else ""
        reports: list[Any] = [None] * self.ranks
        self._collective(
            step, lambda group: dist.all_gather_object(reports, (step, text), group=group)
        )
        if error is not None:
            raise error
        for rank, (_, why) in enumerate(reports):
            if why:
                raise RuntimeError(f"{step}: stopped on every rank, because of rank {rank}: {why}")
        others = ", ".join(f"rank {rank} {their}" for rank, (their, _) in enumerate(reports))
        raise RuntimeError(
            f"{step}: expected the same calls in the same order on all ranks, got {others}"
        )

    def rows(
        self,
        step: str,
        columns: Sequence[Column],
        out: Sequence[int],
        into: Sequence[int],
        starts: Sequence[int] | None = None,
    ) -> list[_core.Tensor]:
        """Sends out[r] rows of each column to rank r, and receives into[r] rows from it.

        The rows for rank r begin at row starts[r], or else where those of the rank before end.
        """
        sizes = Sizes(self.rank, out, into, starts)
        results: list[_core.Tensor] = []

        def transfer(group: Any) -> None:
            # Allocate inside the collective: a rank without memory counts as one that failed.
            if self._device is None:
                results.extend(Transfer(group, columns, sizes, self._neighbours).run())
            else:
                results.extend(over_device(self._given(), self._device, columns, sizes))

        self._collective(step, transfer)
        return results

    def _collective(self, step: str, run: Callable[[Any], Any]) -> None:
        if self._neighbours.broken:
            raise RuntimeError(f"{step}: {self._neighbours.broken}")
        group = self.group
        try:
            # Overrides torch.set_default_device, because torch's collectives make tensors too.
            with torch.device("cpu"):
                run(group)
        except BaseException as error:
            # The ranks are now out of step, and a later collective could mix up messages.
            self._neighbours.break_off(
                f"rank {self.rank} lost its peers in an earlier call; its own entries are valid "
                f"and still in .local; start a new group"
            )
            if not isinstance(error, Exception):
                raise
            raise RuntimeError(
                f"{step}: rank {self.rank} of {self.ranks} could not reach all others: {error}; "
                f"its own entries are valid and still in .local"
            ) from error
