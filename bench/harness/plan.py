"""The seconds of each suite: `make bench` stays under 30 minutes and `make bench-quick` under 3.

A case gets an equal share of what its suite has left, so a long case shortens those after it. A suite
that took longer than planned shortens those after it, when the run would not end in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.case import Case, Scale

# Seconds at the full and at the quick scale, the start of the suite's process included.
SECONDS = {
    "tables": (150, 10),
    "cpp": (200, 12),
    "threads": (60, 5),
    "patterns": (40, 4),
    "unique": (60, 5),
    "data": (240, 14),
    "values": (20, 3),
    "growth": (30, 4),
    "before": (80, 6),
    "memory": (15, 3),
    "scale": (80, 4),
    "churn": (25, 3),
    "overhead": (30, 8),
    "first_calls": (40, 8),
    "kernel_maps": (125, 8),
    "expansion": (40, 5),
    "convolution": (130, 10),
    "networks": (70, 8),
    "packed": (10, 2),
    "geometry": (40, 6),
    "points": (50, 6),
    "sharded": (30, 4),
    "ranks": (45, 10),
    "tensorflow": (60, 12),
    "instructions": (20, 10),
}
LIMITS = {"full": 30 * 60, "quick": 3 * 60}
KEPT = 0.95  # of a limit


def seconds(suite: str, scale: Scale) -> float:
    """The seconds of a suite with all its cases. A smoke run measures every case once."""
    full, quick = SECONDS.get(suite, (0, 0))
    return {"full": full, "quick": quick}.get(scale.name, 0)


def haste(elapsed: float, left: Iterable[str], scale: Scale) -> float:
    """The part of their seconds that the suites left may use, so that the run ends in time."""
    planned = sum(seconds(suite, scale) for suite in left)
    room = KEPT * LIMITS.get(scale.name, 0) - elapsed
    return min(1.0, max(0.0, room / planned)) if planned else 1.0


class Budget:
    """Divides the seconds of a suite among the cases that run; `part` is what the run allows."""

    def __init__(
        self,
        suite: str,
        scale: Scale,
        cases: Sequence[Case],
        wanted: Sequence[str],
        part: float = 1.0,
    ) -> None:
        self.cases = [case for case in cases if case.name in wanted]
        planned = part * seconds(suite, scale)
        self.left = planned * len(self.cases) / max(1, len(cases))

    def shares(self) -> Iterator[tuple[Case, float]]:
        """Each case with its seconds. Call `spend` before the next one."""
        for number, case in enumerate(self.cases):
            yield case, max(0.0, self.left) / (len(self.cases) - number)

    def spend(self, taken: float) -> None:
        self.left -= taken


def summary(used: dict[str, float], scale: Scale) -> list[str]:
    """A table of the planned and the used seconds, suite by suite."""
    from harness.report import markdown

    lines = [[name, f"{seconds(name, scale):.0f}", f"{taken:.0f}"] for name, taken in used.items()]
    total = sum(seconds(name, scale) for name in used)
    lines.append(["together", f"{total:.0f}", f"{sum(used.values()):.0f}"])
    return markdown(["suite", "planned, s", "used, s"], lines)
