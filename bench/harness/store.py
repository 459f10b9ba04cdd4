"""Samples on disk: build/bench/data/SCALE/SUITE.json. Tables and plots are made from these files alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.case import Sample, Scale

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
DATA = BUILD / "data"


@dataclass
class SuiteData:
    """The results of a suite: the machine, the versions of the contenders, and the samples."""

    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    def replace(self, case: str, new: list[Sample]) -> None:
        self.samples = [sample for sample in self.samples if sample.case != case] + new

    def in_order(self, cases: list[str]) -> SuiteData:
        """The samples in the order of the suite's cases. Drops cases that the suite no longer has."""
        rank = {case: number for number, case in enumerate(cases)}
        known = [sample for sample in self.samples if sample.case in rank]
        return SuiteData(self.machine, self.versions, sorted(known, key=lambda s: rank[s.case]))


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


def machine(scale: Scale, suites: Iterable[str]) -> str:
    """The machine of the measurements; names all if there were several."""
    known = (load(scale, suite).machine for suite in suites)
    return " and ".join(dict.fromkeys(filter(None, known)))


def save(scale: Scale, suite: str, data: SuiteData) -> None:
    """Replaces the file at once: an interrupted run leaves the previous one."""
    file = path(scale, suite)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": data.machine,
        "versions": data.versions,
        "samples": [sample.as_json() for sample in data.samples],
    }
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1))
    beside.replace(file)
