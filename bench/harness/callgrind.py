"""Counts instructions under callgrind: those inside `tensorhash_measured` (bench/regress/counted.hpp)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path


def instructions(dump: Path) -> int:
    """The total that callgrind wrote to one of its files."""
    for line in dump.read_text().splitlines():
        if line.startswith(("totals:", "summary:")):
            return int(line.split()[1])
    raise RuntimeError(f"{dump.name}: expected callgrind's totals, found none")


def counted(
    program: Path, environment: dict[str, str], headers: int
) -> tuple[list[str], dict[str, int]]:
    """The first lines that a program prints, and the instructions of each workload that it names."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--toggle-collect=tensorhash_measured",
            "--zero-before=tensorhash_measured",
            "--dump-after=tensorhash_measured",
            "--dump-instr=no",
            f"--callgrind-out-file={folder}/counts",
            str(program),
        ]
        run = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True
        )
        if run.returncode != 0:
            raise RuntimeError(f"{program.name} failed under callgrind:\n{run.stderr}")
        lines = run.stdout.splitlines()
        names = lines[headers:]
        dumps = [Path(folder) / f"counts.{i}" for i in range(1, len(names) + 1)]
        missing = [dump.name for dump in dumps if not dump.exists()]
        if missing:
            raise RuntimeError(
                f"callgrind counted fewer workloads than ran; missing: {', '.join(missing)}"
            )
        return lines[:headers], dict(zip(names, map(instructions, dumps), strict=True))
