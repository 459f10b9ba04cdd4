"""Checks that public C++ names have comments, and that the reference shows them. usage: check_comments.py XML_FOLDER

Reads Doxygen's XML. Every class, struct, enum and free function needs a comment; overloads that follow each other may
share one. Every header needs a place in docs/reference/cpp/.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# These include other headers, define macros for them, or repeat DLPack.
WITHOUT_NAMES = {"tensorhash.hpp", "data.hpp", "export.hpp", "dlpack.hpp", "coords/packed_key.hpp"}


def is_documented(node: ElementTree.Element) -> bool:
    parts = (node.find("briefdescription"), node.find("detaileddescription"))
    return any(part is not None and "".join(part.itertext()).strip() for part in parts)


def undocumented(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.glob("*.xml")):
        for compound in ElementTree.parse(path).getroot().findall("compounddef"):
            kind, name = compound.get("kind"), compound.findtext("compoundname")
            is_public = compound.get("prot", "public") == "public"
            if kind in ("class", "struct") and is_public and not is_documented(compound):
                found.append(f"{location_of(compound)}: {kind} {name}")
            if kind in ("namespace", "file"):
                found += undocumented_members(compound)
    return sorted(set(found))


def undocumented_members(compound: ElementTree.Element) -> list[str]:
    """Free functions and enums. A function may share the comment of an overload."""
    members = [m for m in compound.iter("memberdef") if m.get("kind") in ("function", "enum")]
    named = {m.findtext("name") for m in members if is_documented(m)}
    return [
        f"{location_of(member)}: {member.get('kind')} {member.findtext('name')}"
        for member in members
        if member.findtext("name") not in named
    ]


def location_of(node: ElementTree.Element) -> str:
    where = node.find("location")
    return f"include/{where.get('file').split('include/')[-1]}:{where.get('line')}"


def missing_headers() -> list[str]:
    include = ROOT / "include/tensorhash"
    headers = {path.relative_to(include).as_posix() for path in include.rglob("*.h*")}
    public = {header for header in headers if not header.startswith("step/")} - WITHOUT_NAMES
    pages = "".join(path.read_text() for path in (ROOT / "docs/reference/cpp").glob("*.md"))
    # Breathe finds a header by its name alone; the line above says which one it is.
    shown = set(re.findall(r"^## `tensorhash/(\S+)`\n\n```\{doxygenfile\}", pages, re.M))
    return [f"include/tensorhash/{header}: not in docs/reference/cpp" for header in public - shown]


def main() -> None:
    problems = undocumented(Path(sys.argv[1])) + sorted(missing_headers())
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
