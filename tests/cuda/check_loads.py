"""Checks in the PTX of compile_steps.cu how device code reads memory.

No compiler warns when it reads a key byte by byte.

usage: check_loads.py PTX
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

KERNEL = re.compile(r"\.entry (\w+)\(.*?\n\}\n", re.DOTALL)
NAME = re.compile(r"(find_rows|claim_rows|place_rows)\w*?(Narrow4|Narrow8|Wide12|Wide16)E")
BYTES = re.compile(r"\bld\.[\w.:]*[usb]8\b")
PAIRS = re.compile(r"\bld\.[\w.:]*v2\.[usb]64\b")
MAXIMUM = re.compile(r"\batom\.[\w.]*max\b")


def faults_of(kernel: str, reader: str, code: str) -> list[str]:
    faults = []
    pairs = 2 if reader.startswith("Narrow") else 4  # per bucket
    if BYTES.search(code):
        faults.append("loads single bytes, expected aligned loads of keys")
    if len(PAIRS.findall(code)) < pairs:
        faults.append(
            f"expected at least {pairs} loads of two words, got {len(PAIRS.findall(code))}"
        )
    if kernel == "claim_rows" and reader.startswith("Narrow") and not MAXIMUM.search(code):
        faults.append("expected an atomic maximum for tickets, got none")
    return [f"{kernel}<{reader}>: {fault}" for fault in faults]


def main() -> None:
    faults, seen = [], 0
    for code in KERNEL.finditer(Path(sys.argv[1]).read_text()):
        if name := NAME.search(code[1]):
            seen += 1
            faults += faults_of(name[1], name[2], code[0])
    if seen != 12:
        faults.append(f"expected 12 kernels to check, got {seen}")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
