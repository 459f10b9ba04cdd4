"""The terms of the benchmark: a suite has cases, a case gives samples, a scale says how much to measure."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

Number = int | float
T = TypeVar("T")


@dataclass
class Sample:
    """One contender's result in one row of a table: the seconds of each round, or other numbers."""

    contender: str
    labels: dict[str, Any]
    seconds: list[float] = field(default_factory=list)
    numbers: dict[str, Number] = field(default_factory=dict)
    case: str = ""  # set by the worker
    run: int = 0  # set by the store: a case can be run again

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Scale:
    """How much is measured. `budget` are the seconds of one case; the worker sets them."""

    name: str
    most_rows: int
    hurry: int  # divides the rounds
    budget: float = 0.0

    @property
    def full(self) -> bool:
        return self.name == "full"

    def given(self, seconds: float) -> Scale:
        """The same scale with this budget."""
        return replace(self, budget=seconds)

    def pick(self, full: Sequence[T], quick: Sequence[T]) -> list[T]:
        """The values to measure: `quick` at the quick scale, else `full`, so that a smoke run covers all."""
        return list(quick if self.name == "quick" else full)

    def rows(self, *wanted: int) -> list[int]:
        """These row counts, limited to the most that the scale allows."""
        return sorted({min(rows, self.most_rows) for rows in wanted})

    def rounds(self, rows: int) -> int:
        """More rounds for short calls: a median of microseconds needs them."""
        most = 15 if rows > 1_000_000 else 21 if rows > 100_000 else 51 if rows > 10_000 else 201
        return max(1, most // self.hurry)


FULL = Scale("full", 10_000_000, 3)
QUICK = Scale("quick", 1_000_000, 7)
SMOKE = Scale("smoke", 2_000, 1_000)  # runs all code once; the numbers mean nothing
SCALES = {scale.name: scale for scale in (FULL, QUICK, SMOKE)}


@dataclass(frozen=True)
class Case:
    """One thing to measure. `--only` selects it by its name."""

    name: str
    measure: Callable[[Scale], list[Sample]]


def chosen(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The names that contain a pattern; `*` and `?` work as in a shell."""
    if not patterns:
        return list(names)
    return [n for n in names if any(fnmatch.fnmatch(n, f"*{pattern}*") for pattern in patterns)]


def rows_text(rows: int) -> str:
    """1000 -> 1e3, 500000 -> 5e5: short in names and tables."""
    digits = len(str(rows)) - 1
    lead = rows / 10**digits
    return f"{lead:g}e{digits}" if rows >= 1000 and lead == round(lead, 1) else str(rows)
