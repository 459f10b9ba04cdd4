"""Samples on disk: build/bench/data/SCALE/SUITE.json. Tables and plots are made from these files alone."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.case import Sample, Scale

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
DATA = BUILD / "data"


@dataclass
class SuiteData:
    """The results of a suite: the machine, the versions of the contenders, and the samples of all runs.

    `missing` are the contenders that are not installed, `forgotten` the cases without their earlier runs."""

    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def add_run(self, case: str, new: list[Sample]) -> None:
        """Keeps the samples of earlier runs of this case."""
        run = 1 + max((sample.run for sample in self.samples if sample.case == case), default=-1)
        for sample in new:
            sample.run = run
        self.samples += new

    def forget(self, case: str) -> None:
        """Removes the runs of this case."""
        self.samples = [sample for sample in self.samples if sample.case != case]

    def runs(self) -> dict[str, int]:
        """The cases that were run again, and how often each was run."""
        known = Counter(case for case, _ in {(s.case, s.run) for s in self.samples})
        return {case: runs for case, runs in sorted(known.items()) if runs > 1}

    def recorded(self) -> list[Sample]:
        """One sample per contender and row: the medians of all runs, never the best of them."""
        together: dict[Any, list[Sample]] = {}
        for sample in self.samples:
            key = (sample.case, sample.contender, json.dumps(sample.labels))
            together.setdefault(key, []).append(sample)
        return [_median_of_runs(samples) for samples in together.values()]

    def in_order(self, cases: list[str]) -> SuiteData:
        """The data in the order of the suite's cases. Drops cases that the suite no longer has."""
        rank = {case: number for number, case in enumerate(cases)}
        known = [sample for sample in self.samples if sample.case in rank]
        ordered = sorted(known, key=lambda s: rank[s.case])
        return replace(self, samples=ordered)


def _median_of_runs(samples: list[Sample]) -> Sample:
    first = samples[0]
    if len({sample.run for sample in samples}) == 1:
        return first
    medians = [statistics.median(sample.seconds) for sample in samples if sample.seconds]
    numbers = {
        name: statistics.median(s.numbers[name] for s in samples if name in s.numbers)
        for name in first.numbers
    }
    return Sample(first.contender, first.labels, medians, numbers, first.case)


def path(scale: Scale, suite: str) -> Path:
    return DATA / scale.name / f"{suite}.json"


def load(scale: Scale, suite: str) -> SuiteData:
    """The data of a suite; empty if it was not measured yet."""
    file = path(scale, suite)
    if not file.exists():
        return SuiteData()
    content = json.loads(file.read_text())
    content["samples"] = [Sample(**sample) for sample in content["samples"]]
    return SuiteData(**content)


def forget(scale: Scale, suite: str, cases: Iterable[str]) -> None:
    """Removes the runs of these cases, and notes that it did: no record can be made of what is left."""
    data = load(scale, suite)
    for case in cases:
        data.forget(case)
    data.forgotten = sorted({*data.forgotten, *cases})
    save(scale, suite, data)


def start_anew(scale: Scale, suite: str) -> None:
    """Removes all data of the suite."""
    save(scale, suite, SuiteData())


def forgotten(scale: Scale, suites: Iterable[str]) -> list[str]:
    """The cases that lost runs since the last run of all cases."""
    return [case for suite in suites for case in load(scale, suite).forgotten]


def machine(scale: Scale, suites: Iterable[str]) -> str:
    """The machine of the measurements; names all if there were several."""
    known = (load(scale, suite).machine for suite in suites)
    return " and ".join(dict.fromkeys(filter(None, known)))


def save(scale: Scale, suite: str, data: SuiteData) -> None:
    """Replaces the file at once: an interrupted run leaves a complete one."""
    file = path(scale, suite)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": data.machine,
        "versions": data.versions,
        "samples": [sample.as_json() for sample in data.samples],
        "missing": data.missing,
        "forgotten": data.forgotten,
    }
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1))
    beside.replace(file)
