"""Ranks on one machine send rows through memory that they share, and messages through boxes in it.

A rank may write rows again after the next agreement of all ranks: each has read its rows before it
agrees. So at most three messages of a rank wait in a box, which keeps eight.
"""

from __future__ import annotations

import os
import secrets
import select
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from tensorhash import _config, _core
from tensorhash.distributed.groups import timeout_of

# Tables of one group share the memory. It goes with the group.
_OF: weakref.WeakKeyDictionary[Any, Neighbours] = weakref.WeakKeyDictionary()

_STEP = 1 << 21  # blocks are as large as this or a multiple
_ALIGNED = 64
_PATIENCE = 0.1  # seconds between two looks at whether a neighbour lives
_LEFT = (-1, -1, -1, -1)  # the last message of a rank


class Note(NamedTuple):
    """Where rows for a neighbour begin."""

    file: int
    number: int  # of the block
    at: int


class _Peer:
    """A neighbour: its boxes, its block, and its process."""

    def __init__(self, process: int, name: str, file: int) -> None:
        self.boxes = _core.SharedMemory.open(process, file, f"{name}-0")
        self.taken = 0  # messages of its box for this rank
        self.number = 0
        self.block: _core.SharedMemory | None = None
        self._process = process
        self._name = name
        self._alive = select.poll()
        self._handle = os.pidfd_open(process)
        self._alive.register(self._handle, select.POLLIN)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            os.close(self._handle)

    def is_alive(self) -> bool:
        return not self._alive.poll(0)

    def block_at(self, note: Note) -> _core.SharedMemory:
        """The block that a note is about."""
        if self.block is None or self.number != note.number:
            name = f"{self._name}-{note.number}"
            self.block = _core.SharedMemory.open(self._process, note.file, name)
            self.number = note.number
        return self.block


class Neighbours:
    """The ranks on this rank's machine that can read its memory, and it theirs."""

    def __init__(self) -> None:
        self.peers: dict[int, _Peer] = {}
        #: Whether all ranks of the group are each other's neighbours.
        self.are_all = False
        self.lock = threading.Lock()  # held while rows are packed and read
        self._rank = 0
        self._seconds = 0.0
        self._name = f"tensorhash-{secrets.token_hex(8)}"
        self._boxes: _core.SharedMemory | None = None
        self._number = 0
        self._block: _core.SharedMemory | None = None
        self._used = 0
        self._full: list[_core.SharedMemory] = []  # blocks that the neighbours may still open
        self._is_unwanted = False  # the block goes when the neighbours have read it

    def meet(self, group: Any, rank: int, ranks: int) -> None:
        """Finds the neighbours. Collective."""
        self._rank = rank
        limit = timeout_of(group)
        self._seconds = 1800.0 if limit is None else limit.total_seconds()
        offers: list[Any] = [None] * ranks
        dist.all_gather_object(offers, self._offer(ranks), group=group)
        opened = torch.zeros(ranks, dtype=torch.uint8)
        for peer, offer in enumerate(offers):
            if peer != rank and offer and self._boxes is not None:
                opened[peer] = self._open(peer, offer)
        theirs = torch.empty_like(opened)
        dist.all_to_all_single(theirs, opened, group=group)
        both = opened & theirs
        self.peers = {peer: one for peer, one in self.peers.items() if both[peer]}
        far = torch.tensor(ranks - 1 - len(self.peers))
        dist.all_reduce(far, group=group)
        self.are_all = int(far) == 0
        weakref.finalize(group, self.leave)

    def _offer(self, ranks: int) -> tuple[int, str, int] | None:
        try:
            size = ranks * _core.SharedMemory.box_bytes
            self._boxes = _core.SharedMemory(size, f"{self._name}-0")
        except (OSError, MemoryError):
            return None
        return os.getpid(), self._name, self._boxes.file

    def _open(self, peer: int, offer: tuple[int, str, int]) -> bool:
        try:
            self.peers[peer] = _Peer(*offer)
        except (OSError, MemoryError, AttributeError):  # a Python without pidfd_open
            return False
        return True

    def leave(self) -> None:
        """Tells the neighbours that no message will follow."""
        for peer in self.peers:
            self.post(peer, _LEFT)

    def post(self, peer: int, message: Sequence[int]) -> None:
        """Leaves a message of four numbers for a neighbour."""
        assert self._boxes is not None
        self._boxes.post(peer, message)

    def take(self, peer: int) -> list[int]:
        """The next message of a neighbour; RuntimeError if none comes."""
        one, start = self.peers[peer], time.monotonic()
        while True:
            alive = one.is_alive()
            message = one.boxes.take(self._rank, one.taken, _PATIENCE if alive else 0)
            if message is not None:
                break
            if not alive:
                raise RuntimeError(f"the process of rank {peer} has ended")
            if time.monotonic() - start > self._seconds:
                raise RuntimeError(f"rank {peer} sent nothing for {self._seconds:.0f} seconds")
        if tuple(message) == _LEFT:
            raise RuntimeError(f"rank {peer} has left the group")
        one.taken = (one.taken + 1) % (1 << 32)
        return list(message)

    def agreed(self) -> None:
        """All ranks have read their rows."""
        with self.lock:
            self._used = 0
            self._full.clear()
            if self._is_unwanted:
                self._block, self._is_unwanted = None, False

    def room(self, size: int) -> tuple[_core.SharedMemory, Note]:
        """Memory for `size` bytes, until the next call of agreed()."""
        block = self._block
        if block is None or self._used + size > block.bytes:
            wanted = -(-(size + size // 4) // _STEP) * _STEP
            self._number += 1
            if block is not None:
                self._full.append(block)
            block = _core.SharedMemory(wanted, f"{self._name}-{self._number}")
            self._block, self._used = block, 0
        note = Note(block.file, self._number, self._used)
        self._used += size
        return block, note

    def release(self) -> int:
        """Gives back this rank's block, if need be with the next agreement; its bytes if at once.

        A neighbour may still have to open the block for the rows of the last call.
        """
        if not self.lock.acquire(blocking=False):
            return 0
        try:
            for peer in self.peers.values():
                peer.block = None
            self._is_unwanted = self._used > 0
            if self._block is None or self._is_unwanted:
                return 0
            freed, self._block = self._block.bytes, None
            return freed
        finally:
            self.lock.release()


def size_of(width: int, rows: int) -> int:
    """The bytes of a column's rows in a block, up to the next column."""
    return -(-width * rows // _ALIGNED) * _ALIGNED


def known_neighbours(group: Any) -> Neighbours:
    """The neighbours that an earlier table of the group has found, or none."""
    return _OF[group] if group in _OF else Neighbours()


def neighbours_of(group: Any, rank: int, ranks: int) -> Neighbours:
    """The neighbours in a group. Collective for the first table of the group."""
    if group not in _OF:
        made = Neighbours()
        if ranks > 1:
            made.meet(group, rank, ranks)
        _OF[group] = made
    return _OF[group]


def _release() -> int:
    return sum(each.release() for each in list(_OF.values()))


_config.KEEPERS.append(_release)
