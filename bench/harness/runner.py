"""Runs the chosen cases, each suite in a worker process. Samples are stored after each case."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import process, store
from harness.case import Sample, Scale
from harness.progress import Progress

TICK = 0.5


@dataclass
class Failure:
    case: str
    error: str


def events(descriptor: int, progress: Progress) -> Iterator[dict[str, Any]]:
    """The events of a worker as they come. Updates the progress bar's clock meanwhile."""
    with os.fdopen(descriptor, "rb", buffering=0) as pipe, selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        rest = b""
        while True:
            if not ready.select(TICK):
                progress.tick()
                continue
            chunk = pipe.read(1 << 20)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)


class Worker:
    """A process that measures cases of one suite. Its samples are stored at once."""

    def __init__(
        self, module: str, python: Path | str, scale: Scale, cases: list[str], part: float
    ) -> None:
        self.suite, self.scale = module.rsplit(".", 1)[-1], scale
        self.data = store.load(scale, self.suite)
        self.log = store.path(scale, self.suite).with_suffix(".log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.ended: set[str] = set()
        self.failures: list[Failure] = []
        self.reading, writing = os.pipe()
        command = [str(python), "-m", "harness.worker", module, scale.name, str(writing)]
        command += [str(part), *cases]
        with self.log.open("wb") as noise:
            self.process = subprocess.Popen(
                command,
                env=process.environment(),
                pass_fds=[writing],
                stdout=noise,
                stderr=noise,
                preexec_fn=process.die_with_parent,
            )
        os.close(writing)

    def follow(self, progress: Progress) -> None:
        """Handles its events until it ends, also after a crash."""
        running = ""
        try:
            for event in events(self.reading, progress):
                if "begin" in event:
                    running = event["begin"]
                    progress.begin(running)
                if "end" in event:
                    self.take(event)
                    progress.end(running, event.get("seconds", 0.0), "error" in event)
                    running = ""
                self.data.machine = event.get("machine", self.data.machine)
        except BaseException:
            self.process.terminate()
            raise
        finally:
            code = self.process.wait()
        if code != 0:
            last_words = self.log.read_text(errors="replace")[-2000:]
            self.failures.append(Failure(running or self.suite, f"exit code {code}\n{last_words}"))
        if code != 0 and running:
            self.ended.add(running)
            self.forget(running)
            progress.end(running, 0.0, failed=True)

    def take(self, event: dict[str, Any]) -> None:
        """Stores the samples of a case that has ended, before the next one begins."""
        case = event["end"]
        self.ended.add(case)
        if "error" in event:
            self.failures.append(Failure(case, event["error"]))
            self.forget(case)
            return
        self.data.versions.update(event["versions"])
        self.data.missing = sorted({*self.data.missing, *event["missing"]} - set(event["versions"]))
        self.data.add_run(case, [Sample(**sample) for sample in event["samples"]])
        store.save(self.scale, self.suite, self.data)

    def forget(self, case: str) -> None:
        """Removes the samples of earlier runs of a case that fails now."""
        self.data.forget(case)
        store.save(self.scale, self.suite, self.data)


def run_suite(
    suite: Any, scale: Scale, cases: list[str], progress: Progress, part: float = 1.0
) -> list[Failure]:
    """Runs these cases in this part of the planned seconds. After a crash, a new worker runs the rest."""
    python = getattr(suite, "PYTHON", sys.executable)
    if not Path(python).exists():
        return [Failure(case, f"{python} does not exist: `make bench` makes it") for case in cases]
    failures: list[Failure] = []
    left = list(cases)
    while left:
        worker = Worker(suite.__name__, python, scale, left, part)
        worker.follow(progress)
        failures += worker.failures
        left = [case for case in left if case not in worker.ended]
        if not worker.ended:
            return failures
    return failures
