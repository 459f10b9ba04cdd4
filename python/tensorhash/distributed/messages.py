"""Sends the rows of columns to other ranks, and receives theirs, as bytes.

Memory comes from the core, which keeps freed blocks: calls of similar sizes reuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

from tensorhash import _core
from tensorhash._types import Element
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
        self._pack = pack

    def pack(self, begin: int, end: int, to: _core.Tensor, at: int) -> None:
        """Copies the rows [begin, end) to `to`, from row `at` on."""
        if self._pack is not None:
            self._pack(begin, end, to, at)
            return
        size, width = (end - begin) * self.width, self.width
        rows = as_bytes(self.rows)[begin * width : end * width]
        as_bytes(to)[at * width : at * width + size].copy_(rows)


class Sizes:
    """The rows of a transfer: `out[r]` go to rank r and `into[r]` come from it."""

    def __init__(self, rank: int, out: Sequence[int], into: Sequence[int]) -> None:
        self.rank = rank
        self.out = out
        self.into = into
        self.out_at = [0, *accumulate(out)]
        self.into_at = [0, *accumulate(into)]
        ranks = len(out)
        #: The other ranks. Each rank starts with another one, so that none gets all at once.
        self.to = [(rank + step) % ranks for step in range(1, ranks)]
        self.of = [(rank - step) % ranks for step in range(1, ranks)]


def over_gloo(group: Any, columns: Sequence[Column], sizes: Sizes) -> list[_core.Tensor]:
    """Packs and sends in chunks. This rank's own rows are copied once, while messages travel."""
    received = [_core.empty_rows(sizes.into_at[-1], column.element) for column in columns]
    works = []
    for peer in sizes.of:
        for number, begin, end in _chunks(columns, sizes.into[peer]):
            part = _part(received[number], columns[number], sizes.into_at[peer], begin, end)
            works.append(group.recv([part], peer, _TAG + number))
    away = sizes.out_at[-1] - sizes.out[sizes.rank]
    staged = [
        _core.empty_rows(away if column.rows is None else 0, column.element) for column in columns
    ]
    at = 0
    for peer in sizes.to:
        first = sizes.out_at[peer]
        for number, begin, end in _chunks(columns, sizes.out[peer]):
            column = columns[number]
            rows, start = column.rows, first
            if rows is None:
                rows, start = staged[number], at
                column.pack(first + begin, first + end, rows, at + begin)
            part = _part(rows, column, start, begin, end)
            works.append(group.send([part], peer, _TAG + number))
        at += sizes.out[peer]
    own = sizes.out_at[sizes.rank], sizes.out_at[sizes.rank + 1]
    for column, to in zip(columns, received, strict=True):
        column.pack(*own, to, sizes.into_at[sizes.rank])
    for work in works:
        work.wait()
    return received


def over_device(
    group: Any, device: torch.device, columns: Sequence[Column], sizes: Sizes
) -> list[_core.Tensor]:
    """Sends from a device, in one all-to-all per column."""
    received = []
    for column in columns:
        rows, to = (
            _core.empty_rows(ends[-1], column.element) for ends in (sizes.out_at, sizes.into_at)
        )
        column.pack(0, sizes.out_at[-1], rows, 0)
        sent = as_bytes(rows).to(device)
        got = torch.empty(sizes.into_at[-1] * column.width, dtype=torch.uint8, device=device)
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
