"""Checks what ptxas reports of every kernel body: no stack, no spills, registers within a budget.

usage: check_registers.py BUDGET LOG... [--write]

The LOGs are outputs of `nvcc -Xptxas -v`, which together have all bodies, for one architecture or several. BUDGET
has one line per body: its registers and its name. With --write, BUDGET gets what they say where that is more, and
the bodies that it does not have yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
BODY = re.compile(r"void tensorhash::cuda::run<(.*)>\(")
NAMESPACES = re.compile(r"tensorhash::|device::|step::|device_steps::")


class Body(NamedTuple):
    name: str
    registers: int
    memory: int  # bytes of stack and of spilled registers


def short_name(symbol: str) -> str:
    """The body's own name, as bodies.hpp writes it."""
    demangled = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True)
    body = BODY.search(demangled.stdout)
    return NAMESPACES.sub("", body[1] if body else demangled.stdout).strip()


def read_log(log: Path) -> list[Body]:
    bodies: list[Body] = []
    symbol, memory = "", 0
    for line in log.read_text().splitlines():
        if entry := ENTRY.search(line):
            symbol = entry[1]
        elif bytes_used := MEMORY.search(line):
            memory = sum(int(number) for number in bytes_used.groups())
        elif registers := REGISTERS.search(line):
            bodies.append(Body(short_name(symbol), int(registers[1]), memory))
    return bodies


def read_budget(file: Path) -> dict[str, int]:
    lines = file.read_text().splitlines() if file.exists() else []
    pairs = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {name: int(registers) for registers, name in pairs}


def write_budget(file: Path, budget: dict[str, int]) -> None:
    header = "# The most registers that each kernel body may use, on any architecture.\n"
    lines = [f"{registers:4} {name}\n" for name, registers in sorted(budget.items())]
    file.write_text(header + "".join(lines))


def main() -> None:
    names = [name for name in sys.argv[1:] if name != "--write"]
    file, logs = Path(names[0]), names[1:]
    bodies = [body for log in logs for body in read_log(Path(log))]
    budget = read_budget(file)
    if "--write" in sys.argv:
        for body in bodies:
            budget[body.name] = max(body.registers, budget.get(body.name, 0))
        write_budget(file, budget)
    faults = [
        f"{b.name}: {b.memory} bytes of stack and spills, expected 0" for b in bodies if b.memory
    ]
    faults += [
        f"{b.name}: {b.registers} registers, the budget is {budget.get(b.name, 0)}"
        for b in bodies
        if b.registers > budget.get(b.name, 0)
    ]
    missing = budget.keys() - {b.name for b in bodies}
    faults += [f"{name}: in the budget, but not compiled" for name in sorted(missing)]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
