"""Runs the chosen cases, each suite in a worker, and keeps what they measured whatever happens later."""

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
    """What a worker tells, as it tells it; the progress bar's clock goes on meanwhile."""
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


def run_worker(
    module: str, python: Path | str, scale: Scale, cases: list[str], progress: Progress
) -> tuple[set[str], list[Failure]]:
    """(cases that came to an end, what went wrong). A worker that dies leaves its other cases undone."""
    suite = module.rsplit(".", 1)[-1]
    reading, writing = os.pipe()
    command = [str(python), "-m", "harness.worker", module, scale.name, str(writing), *cases]
    log = store.path(scale, suite).with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    ended: set[str] = set()
    failures: list[Failure] = []
    running = ""
    with log.open("wb") as noise:
        worker = subprocess.Popen(
            command,
            env=process.environment(),
            pass_fds=[writing],
            stdout=noise,
            stderr=noise,
            preexec_fn=process.die_with_parent,
        )
        os.close(writing)
        data = store.load(scale, suite)
        try:
            for event in events(reading, progress):
                data.machine = event.get("machine", data.machine)
                data.versions.update(event.get("versions", {}))
                if "begin" in event:
                    running = event["begin"]
                    progress.begin(running)
                if "end" in event:
                    ended.add(running)
                    if "error" in event:
                        failures.append(Failure(running, event["error"]))
                    else:
                        data.replace(running, [Sample(**sample) for sample in event["samples"]])
                    progress.end(running, event.get("seconds", 0.0), "error" in event)
                    running = ""
                store.save(scale, suite, data)
        except BaseException:
            worker.terminate()
            raise
        finally:
            worker.wait()
    if worker.returncode != 0:
        tail = log.read_text(errors="replace")[-2000:]
        failures.append(Failure(running or suite, f"exit code {worker.returncode}\n{tail}"))
        if running:
            ended.add(running)
            progress.end(running, 0.0, failed=True)
    return ended, failures


def run_suite(suite: Any, scale: Scale, cases: list[str], progress: Progress) -> list[Failure]:
    """All of these cases; after a crash a new worker takes up what is left."""
    python = getattr(suite, "PYTHON", sys.executable)
    if not Path(python).exists():
        return [Failure(case, f"{python} is not there: `make bench` makes it") for case in cases]
    failures: list[Failure] = []
    left = list(cases)
    while left:
        ended, wrong = run_worker(suite.__name__, python, scale, left, progress)
        failures += wrong
        left = [case for case in left if case not in ended]
        if not ended:
            return failures
    return failures
