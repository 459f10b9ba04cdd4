"""Child processes: the worker of a suite, and functions that need a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import machine
from harness.store import ROOT

BENCH = Path(__file__).resolve().parents[1]
TENSORFLOW = ROOT / ".venv-tensorflow" / "bin" / "python"

_CALL = """
import importlib, json, os, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
module, function = sys.argv[1].split(":")
json.dump(getattr(importlib.import_module(module), function)(*json.loads(sys.argv[2])), out)
"""


def environment(**more: str) -> dict[str, str]:
    """Ours, with the benchmark's modules to be found and the threads set for every library."""
    found = os.pathsep.join(filter(None, [str(BENCH), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **machine.settings(), "PYTHONPATH": found, **more}


def call(function: str, *arguments: Any) -> Any:
    """`module:function` of the benchmark, called in a fresh process; JSON in and out."""
    command = [sys.executable, "-c", _CALL, function, json.dumps(arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{function}{arguments} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def resident(key: str = "VmRSS") -> int:
    """Bytes that this process has in memory; `VmHWM`: at most, since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")
