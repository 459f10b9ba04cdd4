"""What commands print: facts as text or JSON, numbers for people, progress on one line."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def give(options: argparse.Namespace, facts: dict[str, Any], text: str) -> None:
    """Prints the facts as JSON if --json was given, else the text."""
    print(json.dumps(facts) if options.json else text)


def table(rows: dict[str, Any]) -> str:
    """One line per row, values in a column."""
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in rows.items())


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(0.00512), duration(2.5)
    ('5.1 ms', '2.5 s')
    """
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


class Progress:
    """Steps of a command: a bar of tqdm if it is installed, else one line, only on a terminal."""

    def __init__(self, steps: int, enabled: bool | None = None) -> None:
        self._steps = steps
        self._done = 0
        self._shown = sys.stderr.isatty() if enabled is None else enabled
        self._bar: Any = None
        if self._shown and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                pass
            else:
                form = "{desc:<40} {bar:30} {n}/{total} {elapsed}"
                self._bar = tqdm(total=steps, bar_format=form, leave=False, file=sys.stderr)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Shows what is being done until it is done."""
        if self._bar is not None:
            self._bar.set_description_str(what)
        elif self._shown:
            end = "" if sys.stderr.isatty() else "\n"
            print(
                f"\r\033[K[{self._done + 1}/{self._steps}] {what}"
                if not end
                else f"[{self._done + 1}/{self._steps}] {what}",
                end=end,
                file=sys.stderr,
                flush=True,
            )
        yield
        self._done += 1
        if self._bar is not None:
            self._bar.update()

    def close(self) -> None:
        """Removes the line."""
        if self._bar is not None:
            self._bar.close()
        elif self._shown and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start
