"""A file over 400 lines, or with a function over 50, says at its top why it is not split.

Lines of comments have at most 100 columns.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CPP = {".cpp", ".hpp", ".h", ".cc", ".cu", ".cuh", ".c"}
PYTHON = {".py"}  # a stub is generated
SETTINGS = {".cmake", ".in", ".sh", ".toml", ".txt", ".yaml", ".yml"}
COMMENT = re.compile(r"\s*(//|#|\* |/\*)")
TOP = 12  # lines: the place of the reason
NOT_CODE = re.compile(
    r'R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/'
    r"|^[ ]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
SKIPPED = re.compile(r"\s*(template <.*>\n\s*)*")
# What stands before the braces of other things that have parentheses.
NO_FUNCTION = re.compile(r"\s*(namespace|extern|class|struct|union|enum)\b|.*=\s*$", re.DOTALL)


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("git lists the files, and this is no clone")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [path for name in listed if (path := ROOT / name).is_file()]


def sources() -> list[Path]:
    return [path for path in tracked() if path.suffix in CPP | PYTHON]


def longest_python(text: str) -> int:
    sizes = [
        node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]
    return max(sizes, default=0)


def longest_cpp(text: str) -> int:
    """The lines of the longest function, from its name on."""
    code = NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    longest = 0
    opened: list[tuple[int, bool]] = []  # where a block's signature begins, and is it a function's
    end_of_last = 0
    for match in re.finditer(r"[{};]", code):
        before = code[end_of_last : match.start()]
        if match[0] == "{":
            begin = end_of_last + SKIPPED.match(before).end()
            opened.append((begin, ")" in before and not NO_FUNCTION.match(before)))
        elif match[0] == "}" and opened:
            begin, is_function = opened.pop()
            if is_function:
                longest = max(longest, code.count("\n", begin, match.end()) + 1)
        end_of_last = match.end()
    return longest


def faults(text: str, suffix: str) -> list[str]:
    top = "\n".join(text.splitlines()[:TOP]).lower()
    longest = longest_python(text) if suffix in PYTHON else longest_cpp(text)
    found = []
    if text.count("\n") > 400 and "over 400 lines" not in top:
        found.append(f"{text.count(chr(10))} lines")
    if longest > 50 and "over 50 lines" not in top:
        found.append(f"a function of {longest} lines")
    return found


def test_long_files_and_functions_give_a_reason():
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in sources()
        if (wrong := faults(path.read_text(), path.suffix))
    }
    assert not found, "split them, or say at the top why not (see the docstring of this test)"


def test_comments_stay_within_100_columns():
    code = [path for path in tracked() if path.suffix in CPP | PYTHON | SETTINGS]
    code += [path for path in tracked() if not path.suffix]  # scripts, Makefile
    found = {
        f"{path.relative_to(ROOT)}:{number}": len(line)
        for path in code
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 100 and COMMENT.match(line)
    }
    assert not found


def test_the_check_finds_what_is_too_long():
    body = "    work();\n" * 49
    assert faults(f"int f(int x) {{\n{body}}}\n", ".cpp") == ["a function of 51 lines"]
    assert faults(f"// Over 50 lines: a list.\nint f(int x) {{\n{body}}}\n", ".cpp") == []
    assert faults(f"auto const f = [&](int x) -> int {{\n{body}}};\n", ".cpp") == [
        "a function of 51 lines"
    ]
    assert faults(f"int f(int x) {{\n{body[12:]}}}\n", ".cpp") == []
    assert faults("def f():\n" + "    work()\n" * 50, ".py") == ["a function of 51 lines"]
    assert faults("x = 1\n" * 401, ".py") == ["401 lines"]
    assert faults('"""Over 400 lines: a table."""\n' + "x = 1\n" * 400, ".py") == []
