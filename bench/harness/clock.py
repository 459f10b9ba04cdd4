"""Timing: contenders take turns, round by round, so that a noisy minute affects all of them."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.case import Sample, Scale

Times = dict[str, list[float]]
Round = Callable[["Clock"], Any]


class Clock:
    """Collects seconds by operation: `with clock("insert"): ...`."""

    def __init__(self) -> None:
        self.times: Times = defaultdict(list)

    def __call__(self, operation: str, calls: int = 1) -> Clock:
        """Names the block. Its seconds are divided by `calls`."""
        self.operation, self.calls = operation, calls
        return self

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.times[self.operation].append((time.perf_counter() - self.start) / self.calls)


def in_turn(contenders: Mapping[str, Round], scale: Scale, rounds: int) -> dict[str, Times]:
    """Seconds by contender and operation. Each contender has one turn per round.

    A contender's first round is a warm-up and does not count, unless it took half the budget. A
    contender that has used up its budget skips the remaining rounds. The first contender is the
    subject of the comparison and has twice the budget.
    """
    budget = {who: scale.budget * (1 if place else 2) for place, who in enumerate(contenders)}
    clocks = {who: Clock() for who in contenders}
    used = dict.fromkeys(contenders, 0.0)
    for number in range(rounds + 1):
        for who, one_round in contenders.items():
            if used[who] > budget[who]:
                continue
            clock, start = Clock(), time.perf_counter()
            one_round(clock)
            taken = time.perf_counter() - start
            if number > 0 or taken > budget[who] / 2:
                used[who] += taken
                for operation, seconds in clock.times.items():
                    clocks[who].times[operation] += seconds
    return {who: dict(clock.times) for who, clock in clocks.items()}


def call(operation: str, work: Callable[[], Any], calls: int = 1) -> Round:
    """A round that makes `calls` calls and nothing else."""

    def one_round(clock: Clock) -> None:
        with clock(operation, calls):
            for _ in range(calls):
                work()

    return one_round


def samples(times: Mapping[str, Times], **labels: Any) -> list[Sample]:
    """One sample per contender and operation."""
    return [
        Sample(who, {**labels, "operation": operation}, seconds)
        for who, by_operation in times.items()
        for operation, seconds in by_operation.items()
    ]


def median(seconds: list[float]) -> float:
    return statistics.median(seconds)


def spread(seconds: list[float]) -> float:
    """Half the interquartile range divided by the median; NaN for one round."""
    if len(seconds) < 2:
        return float("nan")
    low, high = np.quantile(seconds, (0.25, 0.75))
    return float(high - low) / 2 / median(seconds)
