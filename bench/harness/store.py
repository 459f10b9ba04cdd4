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
    """What a suite measured: on which machine, beside whom, and the samples."""

    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    def replace(self, case: str, new: list[Sample]) -> None:
        self.samples = [sample for sample in self.samples if sample.case != case] + new

    def in_order(self, cases: list[str]) -> SuiteData:
        """Samples as the suite lists its cases, whenever they were measured; cases it no longer has go."""
        rank = {case: number for number, case in enumerate(cases)}
        known = [sample for sample in self.samples if sample.case in rank]
        return SuiteData(self.machine, self.versions, sorted(known, key=lambda s: rank[s.case]))


def path(scale: Scale, suite: str) -> Path:
    return DATA / scale.name / f"{suite}.json"


def load(scale: Scale, suite: str) -> SuiteData:
    """Empty if the suite was not measured yet."""
    file = path(scale, suite)
    if not file.exists():
        return SuiteData()
    content = json.loads(file.read_text())
    content["samples"] = [Sample(**sample) for sample in content["samples"]]
    return SuiteData(**content)


def machine(scale: Scale, suites: Iterable[str]) -> str:
    """What the suites were measured on; names more than one if the data is of several."""
    known = (load(scale, suite).machine for suite in suites)
    return " and ".join(dict.fromkeys(filter(None, known)))


def save(scale: Scale, suite: str, data: SuiteData) -> None:
    """Whole or not at all: an interrupted run leaves the last good file."""
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
