"""Progress on stderr: a bar on a terminal, otherwise one line per case."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

WIDTH = 24


def clock_text(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """`begin` and `end` mark a case; `tick` updates the clock while it runs."""

    def __init__(self, total: int, out: TextIO = sys.stderr) -> None:
        self.total, self.out = total, out
        self.done = 0
        self.case = ""
        self.start = time.monotonic()
        self.live = out.isatty()

    def begin(self, case: str) -> None:
        self.case = case
        self.tick()

    def tick(self) -> None:
        if not self.live:
            return
        filled = WIDTH * self.done // max(1, self.total)
        bar = "█" * filled + "░" * (WIDTH - filled)
        passed = clock_text(time.monotonic() - self.start)
        line = f"{bar} {self.done}/{self.total}  {passed}  {self.case}"
        self._draw(line[: shutil.get_terminal_size().columns - 1])

    def end(self, case: str, seconds: float, failed: bool = False) -> None:
        self.done += 1
        if failed or not self.live:
            self.clear()
            verdict = "FAILED" if failed else f"{seconds:.1f} s"
            print(f"[{self.done}/{self.total}] {case}  {verdict}", file=self.out, flush=True)

    def clear(self) -> None:
        """Removes the bar. Call it before printing something else."""
        if self.live:
            self._draw("")

    def _draw(self, line: str) -> None:
        self.out.write(f"\r\x1b[K{line}")
        self.out.flush()
