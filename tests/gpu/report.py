"""Makes the report of `make gpu` from the rows that its programs printed.

usage: report.py DEVICE COMMIT ROWS_FILE

A row is one line with tabs between its words:
    fact  NAME  TEXT                                        of the machine
    check NAME  OUTCOME                                     a suite or a comparison
    time  CONTENDER  TABLE  OPERATION  ROWS  MICROSECONDS   "-" if the machine cannot measure
    peer  NAME  TEXT                                        whether a peer was measured
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Time(NamedTuple):
    contender: str
    table: str
    operation: str
    rows: int
    microseconds: float | None

    @property
    def rate(self) -> str:
        """Millions of rows per second."""
        return "-" if not self.microseconds else f"{self.rows / self.microseconds:,.0f}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def of_kind(kind: str, lines: list[list[str]]) -> list[list[str]]:
    return [line[1:] for line in lines if line[0] == kind]


def times_of(lines: list[list[str]]) -> list[Time]:
    return [
        Time(*words[:3], int(words[3]), None if words[4] == "-" else float(words[4]))
        for words in of_kind("time", lines)
    ]


def beside(times: list[Time]) -> list[str]:
    """One row per table and operation, one column per contender, in millions of rows per second."""
    contenders = list(dict.fromkeys(time.contender for time in times))
    cells: dict[tuple[str, int, str], dict[str, str]] = {}
    for time in times:
        key = (time.table, time.rows, time.operation)
        cells.setdefault(key, {})[time.contender] = time.rate
    rows = (
        [name, f"{size:,}", operation, *(rates.get(one, "") for one in contenders)]
        for (name, size, operation), rates in cells.items()
    )
    return table(["table", "rows", "operation", *contenders], rows)


def report(device: str, commit: str, lines: list[list[str]]) -> list[str]:
    """The lines of the report."""
    is_gpu = device.startswith("cuda")
    facts = [["commit", commit], ["called", f"make gpu DEVICE={device}"], *of_kind("fact", lines)]
    out = [f"# tensorhash on {device}", "", *table(["", ""], facts), ""]
    if not is_gpu:
        out += ["This device is emulated: times mean nothing, so none are shown.", ""]
    out += ["## Checks", "", *table(["check", "outcome"], of_kind("check", lines)), ""]
    times = times_of(lines)
    lanes = [time for time in times if time.contender.endswith(("1 lane", " lanes"))]
    others = [time for time in times if time not in lanes]
    unit = "Millions of rows per second, median of 7 rounds"
    if lanes:
        out += ["## Lanes per row", "", f"{unit}. Which number of lanes is best?", ""]
        out += [*beside(lanes), ""]
    if others:
        out += ["## Tables", "", f"{unit}. Keys are int64 unless said otherwise.", ""]
        out += [*beside(others), ""]
    if peers := of_kind("peer", lines):
        out += [*table(["peer", ""], peers), ""]
    return out


def main() -> None:
    device, commit, file = sys.argv[1:]
    lines = [line.split("\t") for line in Path(file).read_text().splitlines() if line]
    print("\n".join(report(device, commit, lines)))
    if any(outcome.startswith("FAILED") for _, outcome in of_kind("check", lines)):
        sys.exit("some checks failed")


if __name__ == "__main__":
    main()
