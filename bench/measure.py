"""Timing: whole rounds, contender after contender, so that a noisy minute hits all alike."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from types import ModuleType

import numpy as np
from axes import KeyKind

Times = dict[str, list[float]]


class Clock:
    """Collects seconds by operation: `with clock("insert"): ...`."""

    def __init__(self) -> None:
        self.times: Times = defaultdict(list)

    def __call__(self, operation: str) -> Clock:
        self.operation = operation
        return self

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.times[self.operation].append(time.perf_counter() - self.start)


def one_round(peer: ModuleType, kind: KeyKind, rows: int, clock: Clock) -> None:
    """All operations once, on random keys; results are checked by their counts."""
    keys = peer.batch(kind.random(rows, seed=1))
    others = peer.batch(kind.random(rows, seed=2))
    values = peer.batch(np.arange(rows, dtype=np.int64).reshape(-1, 1))

    with clock("construct + insert"):
        made = peer.Table(rows, kind.dtype, kind.shape)
        made.insert(keys, values)
    del made

    table = peer.Table(rows, kind.dtype, kind.shape)
    with clock("insert"):
        _, inserted = table.insert(keys, values)
    with clock("find (hit)"):
        _, found = table.find(keys)
    with clock("find (miss)"):
        _, missed = table.find(others)
    with clock("active_buf_indices"):
        active = table.active()
    with clock("reserve"):
        table.reserve(2 * rows)
    with clock("erase"):
        table.erase(keys)

    distinct = count(inserted)
    if not (count(found) == rows and count(missed) < rows / 100 and len(active) == distinct):
        raise AssertionError(f"{peer.NAME} gave a wrong answer for {kind.name}, {rows} rows")
    if table.size() != 0:
        raise AssertionError(f"{peer.NAME} kept {table.size()} keys after erasing all")


def count(mask: object) -> int:
    array = mask if isinstance(mask, np.ndarray) else mask.numpy()
    return int(np.count_nonzero(array))


def interleaved(peers: list[ModuleType], kind: KeyKind, rows: int, rounds: int) -> dict[str, Times]:
    """Seconds by contender and operation. A first round warms up and is thrown away."""
    clocks = {peer.NAME: Clock() for peer in peers}
    for peer in peers:
        one_round(peer, kind, min(rows, 1_000_000), Clock())
    for _ in range(rounds):
        for peer in peers:
            one_round(peer, kind, rows, clocks[peer.NAME])
    return {name: clock.times for name, clock in clocks.items()}


def median(times: list[float]) -> float:
    return statistics.median(times)


def spread(times: list[float]) -> float:
    """Half the range between the quartiles, as a part of the median."""
    low, high = np.quantile(times, (0.25, 0.75))
    return float(high - low) / 2 / median(times)
