"""Where results go: each script owns one section of bench/results.md and leaves the others alone."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import tensorhash
from tensorhash import _core

RESULTS = Path(__file__).parent / "results.md"
TITLE = "# Benchmark results\n\nMade by `make bench`; each script writes its own section.\n"


def machine() -> str:
    """What the numbers were measured on."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    threads = tensorhash.get_num_threads()
    return (
        f"{model}, {threads} threads, {_core.instruction_set()}, Python {platform.python_version()}"
    )


class Report:
    """Lines that are printed as they come; `write` puts them in place of the section's old ones."""

    def __init__(self, section: str) -> None:
        self.section = section
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        self.lines += lines
        print("\n".join(lines), flush=True)

    def write(self) -> None:
        begin, end = f"<!-- begin {self.section} -->", f"<!-- end {self.section} -->"
        block = "\n".join([begin, *self.lines, end])
        old = RESULTS.read_text() if RESULTS.exists() else TITLE
        section = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        new, replaced = section.subn(lambda _: block, old)
        RESULTS.write_text(new if replaced else f"{old.rstrip()}\n\n{block}\n")
        print(f"\nwritten to {RESULTS}", file=sys.stderr)
