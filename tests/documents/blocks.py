"""The code blocks of README.md and docs/, and how they run in the tests.

The Python blocks of a page run in one namespace, from top to bottom, as a reader would type them. A line that is an
expression with a literal as its comment is a claim: `th.unique([2, 2])  # [2]` must give [2].

A comment before a block says where it runs: `<!-- runs: tensorflow -->` with TensorFlow's environment,
`<!-- runs: torchrun -->` on two ranks, `<!-- runs: never, because ... -->` not at all.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(
    r"(?:<!-- runs: (?P<where>[^>]*?) -->\n)?^```(?P<language>python|cpp)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


class Block(NamedTuple):
    page: str
    line: int  # of the first line of code
    language: str
    where: str  # "" unless a comment says otherwise
    code: str


def pages() -> list[Path]:
    """README.md and the pages of docs/, without decision records: these quote old code."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in docs if page.parent.name != "decisions")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path, language: str) -> list[Block]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        where = match["where"] or ""
        found.append(Block(name_of(page), line, match["language"], where, match["code"]))
    return [block for block in found if block.language == language]


def run(block: Block, namespace: dict[str, Any]) -> int:
    """Runs one block; returns how many claims it made and kept."""
    tree = ast.parse("\n" * (block.line - 1) + block.code, filename=block.page)
    lines = ("\n" * (block.line - 1) + block.code).splitlines()
    claims = 0
    for statement in tree.body:
        claim = claim_of(statement, lines)
        if claim is None:
            code = compile(ast.Module([statement], []), block.page, "exec")
            exec(code, namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), block.page, "eval"), namespace)
        assert plain(value) == claim[0], (
            f"{block.page}:{statement.lineno} says {claim[0]}, got {plain(value)}"
        )
        claims += 1
    return claims


def claim_of(statement: ast.stmt, lines: list[str]) -> tuple[Any] | None:
    """The literal in the comment behind an expression, in a tuple because it may be None."""
    if not isinstance(statement, ast.Expr):
        return None
    rest = lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode()
    comment = re.match(r"\s*# (.*)$", rest)
    if not comment:
        return None
    try:
        return (ast.literal_eval(comment[1]),)
    except (ValueError, SyntaxError):
        return None


def plain(value: Any) -> Any:
    """The value as lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value
