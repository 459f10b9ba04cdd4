"""Child processes: commands, and functions that need their own process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import machine
from harness.store import ROOT

BENCH = Path(__file__).resolve().parents[1]
TENSORFLOW = ROOT / ".venv-tensorflow" / "bin" / "python"

PR_SET_PDEATHSIG = 1

_CALL = """
import importlib, json, os, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
module, function = sys.argv[1].split(":")
json.dump(getattr(importlib.import_module(module), function)(*json.loads(sys.argv[2])), out)
"""


def environment(**more: str) -> dict[str, str]:
    """Our environment, with the path of the benchmark's modules and the threads of every library."""
    found = os.pathsep.join(filter(None, [str(BENCH), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **machine.settings(), "PYTHONPATH": found, **more}


def die_with_parent() -> None:
    """For a child before it starts: ends it when its parent is killed (Linux)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(command: list[str], **settings: str) -> str:
    """The output of a command. RuntimeError with the end of its output if it fails."""
    done = subprocess.run(
        command,
        env=environment(**settings),
        capture_output=True,
        text=True,
        preexec_fn=die_with_parent,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout)[-2000:]
        raise RuntimeError(f"exit code {done.returncode} of {' '.join(command)}\n{said}")
    return done.stdout


def call(function: str, *arguments: Any) -> Any:
    """Calls `module:function` of the benchmark in a new process. Arguments and result are JSON."""
    return json.loads(run([sys.executable, "-c", _CALL, function, json.dumps(arguments)]))


def resident(key: str = "VmRSS") -> int:
    """Bytes of resident memory; with `VmHWM` the peak since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")
