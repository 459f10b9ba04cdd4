"""Ranks on one machine share memory: rows lie in blocks, messages in boxes.

A rank may write rows again after the next agreement of all ranks: each has read its rows before it
agrees. So at most four messages of a rank wait in a box, and a fifth if the rank leaves. A box
keeps eight.
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
_LEAVING = 5.0  # seconds that a rank waits for a neighbour to take its messages
_KEPT = 8  # messages of a box
_LEFT = [-1, -1, -1, -1]  # the last message of a rank


class Note(NamedTuple):
    """Where rows for a neighbour begin."""

    file: int
    number: int  # of the block, as -1 - number: agreements have no negative numbers
    at: int


class Offer(NamedTuple):
    """What another rank needs to open this rank's boxes."""

    process: int
    name: str
    file: int
    namespace: int  # in which the process has this id


class _Peer:
    """A neighbour: its boxes, its block, and its process."""

    def __init__(self, process: int, name: str, file: int) -> None:
        self.boxes = _core.SharedMemory.open(process, file, f"{name}-0")
        self.taken = 0  # messages of its box for this rank
        self.posted = 0  # messages for it
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

    def has_left(self, rank: int) -> bool:
        """Whether its last message for this rank is there, even if not yet taken."""
        waiting = (self.boxes.take(rank, _after(self.taken, n), 0) for n in range(_KEPT))
        return _LEFT in waiting

    def block_at(self, note: Note) -> _core.SharedMemory:
        """The block that a note is about."""
        if self.block is None or self.number != note.number:
            name = f"{self._name}-{-1 - note.number}"
            self.block = _core.SharedMemory.open(self._process, note.file, name)
            self.number = note.number
        return self.block


class Neighbours:
    """The ranks on this rank's machine that can read its memory, and it theirs."""

    def __init__(self) -> None:
        self.peers: dict[int, _Peer] = {}
        #: Whether all ranks of the group are each other's neighbours.
        self.are_all = False
        #: Why no table of the group may call other ranks again.
        self.broken = ""
        self.lock = threading.Lock()  # held while rows are packed and read
        self._rank = 0
        self._process = os.getpid()
        self._has_left = False
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

    def _offer(self, ranks: int) -> Offer | None:
        try:
            size = ranks * _core.SharedMemory.box_bytes
            self._boxes = _core.SharedMemory(size, f"{self._name}-0")
            return Offer(os.getpid(), self._name, self._boxes.file, _process_namespace())
        except (OSError, MemoryError):
            return None

    def _open(self, peer: int, offer: Offer) -> bool:
        try:
            if offer.namespace != _process_namespace():
                return False
            self.peers[peer] = _Peer(offer.process, offer.name, offer.file)
        except (OSError, MemoryError, AttributeError):  # a Python without pidfd_open
            return False
        return True

    def leave(self) -> None:
        """Leaves when the neighbours have taken this rank's messages, and drops all memory."""
        if os.getpid() != self._process:
            return
        self._say_that_it_leaves()
        if not self.broken:
            for one in self.peers.values():
                self._wait_until_taken(one)
        self.peers, self.are_all = {}, False
        self._boxes = self._block = None
        self._full.clear()

    def break_off(self, why: str) -> None:
        """Refuses all further calls, and lets the neighbours know at once."""
        self.broken = why
        self._say_that_it_leaves()

    def _say_that_it_leaves(self) -> None:
        if self._has_left or os.getpid() != self._process:
            return
        self._has_left = True
        for peer in self.peers:
            self.post(peer, _LEFT)

    def _wait_until_taken(self, one: _Peer) -> None:
        """A neighbour opens a block by way of this process, so it must not end before."""
        end = time.monotonic() + _LEAVING
        while one.boxes.taken(self._rank) != _after(one.posted, -1):  # it never takes the last
            if not one.is_alive() or one.has_left(self._rank) or time.monotonic() > end:
                return
            time.sleep(0.001)

    def _require_own_process(self) -> None:
        # A fork has the same memory, and would write into what the neighbours read.
        if os.getpid() != self._process:
            raise RuntimeError(
                f"process {os.getpid()} is a fork of rank {self._rank}; only process "
                f"{self._process} may call the ranks of the group"
            )

    def post(self, peer: int, message: Sequence[int]) -> None:
        """Leaves a message of four numbers for a neighbour."""
        self._require_own_process()
        assert self._boxes is not None
        self._boxes.post(peer, message)
        self.peers[peer].posted = _after(self.peers[peer].posted, 1)

    def take_numbers(self, peer: int) -> list[int]:
        """The numbers of a neighbour's agreement."""
        message = self._next(peer)
        if message[1] < 0:
            raise RuntimeError(f"rank {peer} sent rows instead of its part of an agreement")
        self._has_taken(peer)
        return message

    def take_rows(self, peer: int, rows: int) -> tuple[_core.SharedMemory, int]:
        """The block with a neighbour's rows, and where in it they begin."""
        *note, sent = self._next(peer)
        if note[1] >= 0 or sent != rows:
            what = f"{sent} rows" if note[1] < 0 else "its part of an agreement"
            raise RuntimeError(f"rank {peer} sent {what} instead of {rows} rows")
        where = Note(*note)
        block = self.peers[peer].block_at(where)
        self._has_taken(peer)
        return block, where.at

    def _has_taken(self, peer: int) -> None:
        """Tells a neighbour that its messages so far were read, and blocks opened."""
        assert self._boxes is not None
        self._boxes.set_taken(peer, self.peers[peer].taken)

    def _next(self, peer: int) -> list[int]:
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
        if message == _LEFT:
            raise RuntimeError(f"rank {peer} has left the group")
        one.taken = _after(one.taken, 1)
        return message

    def agreed(self) -> None:
        """All ranks have read their rows."""
        with self.lock:
            self._used = 0
            self._full.clear()
            if self._is_unwanted:
                self._block, self._is_unwanted = None, False

    def room(self, size: int) -> tuple[_core.SharedMemory, Note]:
        """Memory for `size` bytes, until the next call of agreed()."""
        self._require_own_process()
        block = self._block
        if block is None or self._used + size > block.bytes:
            wanted = -(-(size + size // 4) // _STEP) * _STEP
            self._number += 1
            if block is not None:
                self._full.append(block)
            block = _core.SharedMemory(wanted, f"{self._name}-{self._number}")
            self._block, self._used = block, 0
        note = Note(block.file, -1 - self._number, self._used)
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


def _process_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _after(count: int, more: int) -> int:
    """A count of messages: boxes count modulo 2^32."""
    return (count + more) % (1 << 32)


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
