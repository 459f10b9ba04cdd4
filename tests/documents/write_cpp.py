"""Writes the C++ blocks of README.md and docs/ as programs. usage: write_cpp.py FOLDER

The lines of a block up to its last `#include` or `using` stay at the top; the others become main().
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from blocks import Block, blocks_of, pages

TOP = re.compile(r"^(#include|using) ")


def program_of(block: Block) -> str:
    lines = block.code.splitlines()
    top = max((n + 1 for n, line in enumerate(lines) if TOP.match(line)), default=0)
    if re.search(r"^int main\(", block.code, re.M):
        top = len(lines)
    parts = [f'#line {block.line} "{block.page}"', *lines[:top]]
    if top < len(lines):
        parts += ["int main() {", f'#line {block.line + top} "{block.page}"', *lines[top:], "}"]
    return "\n".join(parts) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [block for page in pages() for block in blocks_of(page, "cpp")]
    for block in blocks:
        if not block.where:
            name = f"{Path(block.page).stem.lower()}_{block.line}.cpp"
            (folder / name).write_text(program_of(block))


if __name__ == "__main__":
    main()
