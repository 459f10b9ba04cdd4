"""Whether the goals were reached, and the tables of them. All results are computed from the data."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.case import Sample, Scale
from harness.goal_list import GOALS
from harness.goal_values import Goal, Measured
from harness.report import markdown, number


@dataclass(frozen=True)
class Verdict:
    """A goal and the measured values by condition. The worst value decides."""

    goal: Goal
    measured: dict[str, float]
    earlier: bool = False  # from a run before this one
    bound: str = ""  # the figures that bound it

    @property
    def score(self) -> float:
        """At least 1 if the goal was reached."""
        if self.goal.at_most:
            return self.goal.target / max(max(self.measured.values()), 1e-12)
        return min(self.measured.values()) / self.goal.target

    def text(self) -> str:
        parts = [
            f"{where}: {number(v)}" if where else number(v) for where, v in self.measured.items()
        ]
        return ", ".join(parts)

    def goal_text(self) -> str:
        unit = self.goal.unit if self.goal.unit in ("", "x") else f" {self.goal.unit}"
        text = f"{'at most ' if self.goal.at_most else ''}{self.goal.target:.3g}{unit}"
        return text if self.goal.record is None else f"{text} (record {number(self.goal.record)})"

    def outcome(self) -> str:
        kind = "goal" if self.goal.record is None else "floor"
        if self.score >= 1:
            return "reached" if kind == "goal" else "held"
        bound = f". {self.bound}" if self.bound else ""
        return f"missed: {self.score:.0%} of the {kind}{bound}"


def judge(suites: dict[str, list[Sample]]) -> list[Verdict]:
    data = Measured(suites)
    return [verdict_of(goal, data) for goal in GOALS]


def verdict_of(goal: Goal, data: Measured) -> Verdict:
    measured = {where: value for where, value in goal.values(data) if value is not None}
    return Verdict(goal, measured, bound=goal.bound(data) if measured else "")


def with_earlier(verdicts: list[Verdict], table: str) -> list[Verdict]:
    """Goals that were not measured keep what the table of an earlier run says."""
    texts = measured_texts(table)
    return [
        verdict
        if verdict.measured or verdict.goal.what not in texts
        else Verdict(verdict.goal, values_in(texts[verdict.goal.what]), earlier=True)
        for verdict in verdicts
    ]


def measured_texts(table: str) -> dict[str, str]:
    """The measured values in the tables of goals, as they are written, by the name of the goal."""
    lines = (line.strip("| ").split(" | ") for line in table.splitlines())
    return {cells[0]: cells[2] for cells in lines if len(cells) == 4}


def values_in(text: str) -> dict[str, float]:
    """Reads what Verdict.text() wrote."""
    parts = re.findall(r"(?:^|, )(?:(.+?): )?([\d.]+)(?=, |$)", text)
    return {where: float(value) for where, value in parts}


def section(verdicts: list[Verdict], scale: Scale, machine: str) -> list[str]:
    """The tables of all goals that were measured. Marks results of a quick run."""
    known = [verdict for verdict in verdicts if verdict.measured]
    if not known:
        return []
    goals = [verdict for verdict in known if verdict.goal.record is None]
    floors = [verdict for verdict in known if verdict.goal.record is not None]
    lines = ["## Goals", "", f"{machine}.", "", summary(verdicts, scale), ""]
    if goals:
        lines += [*table(goals, "goal"), ""]
    if floors:
        lines += ["### Floors", "", FLOORS, "", *table(floors, "floor"), ""]
    return lines[:-1]


FLOORS = "Goals that an earlier record reached. Each floor is 0.9 of that record."


def summary(verdicts: list[Verdict], scale: Scale) -> str:
    known = [verdict for verdict in verdicts if verdict.measured]
    parts = []
    for kind, word in (("goals", "reached"), ("floors", "held")):
        of_kind = [v for v in known if (v.goal.record is None) == (kind == "goals")]
        if of_kind:
            good = sum(verdict.score >= 1 for verdict in of_kind)
            parts.append(f"{good} of {len(of_kind)} {kind} {word}")
    text = f"{', '.join(parts)}. If several values were measured, the worst one decides."
    if len(known) < len(verdicts):
        text += f" {len(verdicts) - len(known)} more were not measured."
    if earlier := sum(verdict.earlier for verdict in known):
        text += f" {earlier} are those of an earlier run."
    if not scale.full:
        text += f" From a {scale.name} run: less precise."
    return text


def table(verdicts: list[Verdict], kind: str) -> list[str]:
    lines = [[v.goal.what, v.goal_text(), v.text(), v.outcome()] for v in verdicts]
    return markdown(["what", kind, "measured", "outcome"], lines, texts=4)
