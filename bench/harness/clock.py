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

    The contenders divide the case's budget; the first one, the subject of the comparison, gets two
    shares. A contender that has used its share skips the remaining rounds. Its first round is a
    warm-up and does not count, unless it took half the share.
    """
    share = scale.budget / (len(contenders) + 1)
    shares = {name: share * (1 if place else 2) for place, name in enumerate(contenders)}
    clocks = {name: Clock() for name in contenders}
    used = dict.fromkeys(contenders, 0.0)
    for number in range(rounds + 1):
        for name, one_round in contenders.items():
            if used[name] > shares[name]:
                continue
            clock, start = Clock(), time.perf_counter()
            one_round(clock)
            taken = time.perf_counter() - start
            used[name] += taken
            if number > 0 or taken > shares[name] / 2:
                for operation, seconds in clock.times.items():
                    clocks[name].times[operation] += seconds
    return {name: dict(clock.times) for name, clock in clocks.items()}


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
        Sample(contender, {**labels, "operation": operation}, seconds)
        for contender, by_operation in times.items()
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
