"""Every source of the library and of its tests builds without precompiled headers.

A precompiled header would hide a missing #include: the build passes, and a user's build fails.
This test reads names and #include lines, and compiles nothing. `make test-release` also builds
without precompiled headers.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRECOMPILED = {"src": "src/precompiled.hpp", "tests": "tests/support/precompiled.hpp"}

# Targets of their own, which build without a precompiled header anyway.
PLAIN = ("src/device", "src/cuda", "tests/device", "tests/emulate", "tests/ptx")

# The names of the standard library, and of GoogleTest, that each header brings.
STANDARD = {
    "algorithm": r"std::(?:(?:stable_)?sort|min|max|minmax|clamp|fill(?:_n)?|copy(?:_n|_if)?|find(?:_if)?"
    r"|(?:any|all|none)_of|equal|(?:lower|upper)_bound|reverse|unique|transform|remove(?:_if)?|rotate"
    r"|count(?:_if)?|(?:max|min)_element|nth_element|is_sorted|generate|replace|shuffle|ranges::\w+)\(",
    "atomic": r"std::(?:atomic|memory_order)",
    "cstdint": r"std::u?int\d+_t",
    "cstring": r"std::(?:mem(?:cpy|set|cmp|move|chr)|strlen|strcmp|strerror)\(",
    "functional": r"std::(?:function|less|greater|hash|reference_wrapper|ref|invoke)\b",
    "gtest/gtest.h": r"\b(?:TEST|TEST_P|TEST_F|TYPED_TEST)\(|testing::",
    "map": r"std::(?:multi)?map\b",
    "memory": r"std::(?:(?:unique|shared|weak)_ptr|make_(?:unique|shared))\b",
    "optional": r"std::(?:optional|nullopt)\b",
    "random": r"std::(?:mt19937|\w+_distribution|random_device)",
    "string": r"std::(?:string\b|to_string\()",
    "thread": r"std::(?:j?thread\b|this_thread)",
    "vector": r"std::vector\b",
}


@functools.cache
def code_of(path: Path) -> str:
    """The text without comments and strings; #include lines stay."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    lines = [
        line if line.lstrip().startswith("#") else re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        for line in text.splitlines()
    ]
    return "\n".join(lines)


@functools.cache
def included_by(path: Path) -> list[str | Path]:
    """Paths for files of this tree, names for all others."""
    found: list[str | Path] = []
    for name in re.findall(r'^\s*#\s*include\s*["<](.+?)[">]', code_of(path), re.MULTILINE):
        places = (path.parent, ROOT / "include", ROOT / "src", ROOT / "tests")
        here = next((place / name for place in places if (place / name).is_file()), None)
        found.append(here.resolve() if here else name)
    return found


@functools.cache
def reached_from(path: Path) -> frozenset[str | Path]:
    """What the file includes, and what these files include."""
    reached: set[str | Path] = set()
    waiting: list[str | Path] = [path]
    while waiting:
        at = waiting.pop()
        if at not in reached:
            reached.add(at)
            waiting += included_by(at) if isinstance(at, Path) else []
    return frozenset(reached)


@functools.cache
def declared_in(path: Path) -> frozenset[str]:
    """The types, constants and functions that a header declares in its namespaces."""
    text = code_of(path)
    types = r"^(?:class|struct|enum class)\s+(?:\[\[\w+\]\]\s+)?(?:TH_API\s+)?(\w+)[^;]*?[{:]"
    patterns = (types, r"^using (\w+) =", r"^inline constexpr [\w:]+ (k\w+)\b")
    return frozenset(name for p in patterns for name in re.findall(p, text, re.MULTILINE))


def missing_includes(path: Path, precompiled: Path) -> list[str]:
    code, reached = code_of(path), reached_from(path)
    missing = [
        f"<{header}>"
        for header, names in STANDARD.items()
        if header in included_by(precompiled) and header not in reached and re.search(names, code)
    ]
    words = set(re.findall(r"\w+", code))
    known = frozenset().union(*(declared_in(at) for at in reached if isinstance(at, Path)))
    for header in reached_from(precompiled) - reached:
        used = sorted(declared_in(header) & words - known) if isinstance(header, Path) else []
        missing += [f'"{header.relative_to(ROOT)}" for {name}' for name in used]
    return missing


@pytest.mark.parametrize("top", PRECOMPILED)
def test_no_source_relies_on_a_precompiled_header(top):
    precompiled = ROOT / PRECOMPILED[top]
    files = [path for path in (ROOT / top).rglob("*") if path.suffix in (".cpp", ".hpp")]
    files = [path for path in files if not str(path.relative_to(ROOT)).startswith(PLAIN)]
    # A header without #pragma once is a piece of the files that include it.
    sources = [p for p in files if p.suffix == ".cpp" or "#pragma once" in code_of(p)]
    missing = [
        f"{path.relative_to(ROOT)} does not include {what}"
        for path in sorted(sources)
        for what in missing_includes(path, precompiled)
    ]
    assert not missing, "\n".join(missing)


def test_the_check_knows_every_precompiled_header_of_the_standard_library():
    for file in PRECOMPILED.values():
        names = {at for at in included_by(ROOT / file) if isinstance(at, str)}
        assert names <= STANDARD.keys(), f"{file}: add the names of {names - STANDARD.keys()}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("std::vector<int> all();  // std::string", ["<vector>"]),
        ("#include <vector>\nstd::vector<int> all();", []),
        ('char const* name = "std::string";', []),
        ("Neighbors all();", ['"include/tensorhash/coords/types.hpp" for Neighbors']),
        ('#include "tensorhash/coords/neighbours.hpp"\nNeighbors all();', []),
    ],
)
def test_the_check_sees_a_missing_include(code, expected, tmp_path):
    source = tmp_path / "source.cpp"
    source.write_text(code)
    assert missing_includes(source, ROOT / PRECOMPILED["src"]) == expected
