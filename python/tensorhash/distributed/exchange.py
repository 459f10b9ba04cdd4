"""The collectives: ranks agree before each step, and exchange rows.

Every step starts with `agree`. So an error on one rank raises on all ranks, and no rank waits for
one that has stopped.
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
    """One rank's connection to the other ranks of a process group."""

    def __init__(self, process_group: Any) -> None:
        group = usable_group(process_group)
        # A weak reference: a table must not keep the group alive after `destroy_process_group`.
        self._group = weakref.ref(group)
        given = dist.group.WORLD if process_group is None else process_group
        self._given = weakref.ref(given)  # may send from devices
        self._device = torch.device("cpu")  # of the memory that rows() sends
        self.rank: int = dist.get_rank(group)
        self.ranks: int = dist.get_world_size(group)
        self._broken = ""
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
        return bool(self._broken)

    def agree(
        self, step: str, error: BaseException | None = None, numbers: Sequence[int] = ()
    ) -> np.ndarray[Any, Any]:
        """Agrees on a step. Returns the `numbers` of all ranks, int64 [ranks, ranks].
        A rank passes at most one number per rank. If a rank has an error or is at another step,
        every rank raises: the rank itself its own error, the others a RuntimeError that quotes it.
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

    def rows(self, step: str, columns: Sequence[Bytes], out: Any, into: Any) -> list[Bytes]:
        """Sends out[r] rows of each column to rank r, and receives into[r] rows from it."""
        sizes = [int(n) for n in out], [int(n) for n in into]
        results: list[Bytes] = []

        def transfer(group: Any) -> None:
            # Allocate inside the collective: a rank without memory counts as one that failed.
            sent = [torch.from_numpy(np.ascontiguousarray(c)).to(self._device) for c in columns]
            received = [part.new_empty((sum(sizes[1]), part.shape[1])) for part in sent]
            works = [
                dist.all_to_all_single(
                    *pair, sizes[1], sizes[0], group=self._sender(group), async_op=True
                )
                for pair in zip(received, sent, strict=True)
                if pair[0].shape[1] > 0
            ]
            for work in works:
                work.wait()
            results.extend(part.cpu().numpy() for part in received)

        self._collective(step, transfer)
        return results

    def _sender(self, group: Any) -> Any:
        """The group that can send from the device."""
        return group if self._device.type == "cpu" else self._given()

    def _collective(self, step: str, run: Callable[[Any], Any]) -> None:
        if self._broken:
            raise RuntimeError(f"{step}: {self._broken}")
        group = self.group
        try:
            # Overrides torch.set_default_device, because torch's collectives make tensors too.
            with torch.device("cpu"):
                run(group)
        except BaseException as error:
            # The ranks are now out of step, and a later collective could mix up messages.
            self._broken = (
                f"rank {self.rank} lost its peers in an earlier call; its own entries are valid "
                f"and still in .local; start a new group"
            )
            if not isinstance(error, Exception):
                raise
            raise RuntimeError(
                f"{step}: rank {self.rank} of {self.ranks} could not reach all others: {error}; "
                f"its own entries are valid and still in .local"
            ) from error
