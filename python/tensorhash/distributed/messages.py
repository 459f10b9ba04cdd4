"""Sends the rows of columns to other ranks, and receives theirs, as bytes.

Rows for ranks on the same machine go through memory that they share. Other memory comes from the
core, which keeps freed blocks: calls of similar sizes reuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

from tensorhash import _core
from tensorhash._types import Element
from tensorhash.distributed.neighbours import Neighbours, size_of
from tensorhash.distributed.rows import width_of

# pack(begin, end, to, at) copies the rows [begin, end) to `to`, from row `at` on.
Pack: TypeAlias = Callable[[int, int, _core.Tensor, int], None]

# Bytes per message. While one travels, the next one is packed.
_CHUNK = 1 << 21

# The tag of column c is this plus c. The caller may use the same group, with other tags.
_TAG = 0x68617368


class Column:
    """Rows to send, grouped by rank: in memory, or made by `pack` chunk by chunk."""

    def __init__(
        self, element: Element, *, pack: Pack | None = None, rows: _core.Tensor | None = None
    ) -> None:
        self.element = element
        self.width = width_of(element)
        self.rows = rows
        if pack is None:
            assert rows is not None
            pack = partial(_core.copy_rows, rows)
        #: Copies the rows [begin, end) to `to`, from row `at` on.
        self.pack: Pack = pack


class Sizes:
    """The rows of a transfer: `out[r]` go to rank r, from row out_at[r] on; `into[r]` come."""

    def __init__(
        self, rank: int, out: Sequence[int], into: Sequence[int], starts: Sequence[int] | None
    ) -> None:
        self.rank = rank
        self.out = out
        self.into = into
        self.out_at = [0, *accumulate(out)] if starts is None else starts
        self.into_at = [0, *accumulate(into)]
        ranks = len(out)
        #: The other ranks. Each rank starts with another one, so that none gets all at once.
        self.to = [(rank + step) % ranks for step in range(1, ranks)]
        self.of = [(rank - step) % ranks for step in range(1, ranks)]

    def rows_for(self, peer: int) -> tuple[int, int]:
        """Begin and end of the rows that go to a rank."""
        return self.out_at[peer], self.out_at[peer] + self.out[peer]


class Transfer:
    """Columns on their way: in chunks over gloo, or through the memory of neighbours."""

    def __init__(
        self, group: Any, columns: Sequence[Column], sizes: Sizes, neighbours: Neighbours
    ) -> None:
        self._group = group
        self._columns = columns
        self._sizes = sizes
        self._neighbours = neighbours
        self._received = [_core.empty_rows(sizes.into_at[-1], each.element) for each in columns]
        self._works: list[Any] = []
        self._kept: list[Any] = []  # memory that works read

    def run(self) -> list[_core.Tensor]:
        """This rank's own rows are copied once, while messages travel."""
        self._receive_far()
        with self._neighbours.lock:
            self._send_far()
            self._pack_near()
            arriving = self._open_near()
            own = self._sizes.rows_for(self._sizes.rank)
            for column, to in zip(self._columns, self._received, strict=True):
                column.pack(*own, to, self._sizes.into_at[self._sizes.rank])
            self._read_near(arriving)
        for work in self._works:
            work.wait()
        return self._received

    def _split(self, peers: list[int], rows: Sequence[int], *, near: bool) -> list[int]:
        """The peers with rows that are neighbours, or those that are not."""
        return [each for each in peers if rows[each] and (each in self._neighbours.peers) == near]

    def _receive_far(self) -> None:
        sizes = self._sizes
        for peer in self._split(sizes.of, sizes.into, near=False):
            for number, begin, end in _chunks(self._columns, sizes.into[peer]):
                first, column = sizes.into_at[peer], self._columns[number]
                part = _part(self._received[number], column, first, begin, end)
                self._works.append(self._group.recv([part], peer, _TAG + number))

    def _send_far(self) -> None:
        sizes = self._sizes
        peers = self._split(sizes.to, sizes.out, near=False)
        away = sum(sizes.out[peer] for peer in peers)
        staged = [
            _core.empty_rows(away if column.rows is None else 0, column.element)
            for column in self._columns
        ]
        self._kept += staged
        at = 0
        for peer in peers:
            first = sizes.out_at[peer]
            for number, begin, end in _chunks(self._columns, sizes.out[peer]):
                column = self._columns[number]
                rows, start = column.rows, first
                if rows is None:
                    rows, start = staged[number], at
                    column.pack(first + begin, first + end, rows, at + begin)
                part = _part(rows, column, start, begin, end)
                self._works.append(self._group.send([part], peer, _TAG + number))
            at += sizes.out[peer]

    def _pack_near(self) -> None:
        sizes = self._sizes
        peers = self._split(sizes.to, sizes.out, near=True)
        if not peers:
            return
        block, note = self._neighbours.room(sum(self._bytes(sizes.out[peer]) for peer in peers))
        for peer in peers:
            rows, at = sizes.out[peer], note.at
            for column in self._columns:
                column.pack(*sizes.rows_for(peer), block.rows(at, rows, column.element), 0)
                at += size_of(column.width, rows)
            self._neighbours.post(peer, (*note, rows))
            note = note._replace(at=at)

    def _bytes(self, rows: int) -> int:
        """The bytes of rows of all columns in a block."""
        return sum(size_of(column.width, rows) for column in self._columns)

    def _open_near(self) -> list[tuple[int, _core.SharedMemory, int]]:
        """The neighbours with rows for this rank, each with its block and where they begin."""
        sizes = self._sizes
        return [
            (peer, *self._neighbours.take_rows(peer, sizes.into[peer]))
            for peer in self._split(sizes.of, sizes.into, near=True)
        ]

    def _read_near(self, arriving: list[tuple[int, _core.SharedMemory, int]]) -> None:
        sizes = self._sizes
        for peer, block, at in arriving:
            rows, to = sizes.into[peer], sizes.into_at[peer]
            for column, received in zip(self._columns, self._received, strict=True):
                _core.copy_rows(block.rows(at, rows, column.element), 0, rows, received, to)
                at += size_of(column.width, rows)


def over_device(
    group: Any, device: torch.device, columns: Sequence[Column], sizes: Sizes
) -> list[_core.Tensor]:
    """Sends from a device, in one all-to-all per column."""
    received = []
    for column in columns:
        rows, to = (
            _core.empty_rows(sum(counts), column.element) for counts in (sizes.out, sizes.into)
        )
        at = 0
        for peer, count in enumerate(sizes.out):
            column.pack(*sizes.rows_for(peer), rows, at)
            at += count
        sent = as_bytes(rows).to(device)
        got = torch.empty(sum(sizes.into) * column.width, dtype=torch.uint8, device=device)
        split = [[count * column.width for count in counts] for counts in (sizes.into, sizes.out)]
        dist.all_to_all_single(got, sent, *split, group=group)
        as_bytes(to).copy_(got)
        received.append(to)
    return received


def as_bytes(tensor: _core.Tensor | None) -> torch.Tensor:
    """A view of the memory of a contiguous tensor on the CPU."""
    if tensor is None or 0 in tensor.shape:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(tensor, dtype=torch.uint8)


def _part(rows: _core.Tensor, column: Column, first: int, begin: int, end: int) -> torch.Tensor:
    width = column.width
    return as_bytes(rows)[(first + begin) * width : (first + end) * width]


def _chunks(columns: Sequence[Column], rows: int) -> Iterator[tuple[int, int, int]]:
    """(column, begin, end) of the messages for this many rows: sender and receiver agree."""
    for number, column in enumerate(columns):
        step = max(1, _CHUNK // column.width)
        for begin in range(0, rows, step):
            yield number, begin, min(rows, begin + step)
