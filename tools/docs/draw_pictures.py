#!/usr/bin/env python3
"""Draws the pictures of docs/architecture.md: the layers from its table, and a lookup. tools/build-docs runs it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
BLUE, GREEN, YELLOW, AMBER, LILAC = "#e0f2fe", "#dcfce7", "#fef9c3", "#fde68a", "#ede9fe"
ORANGE, RED = "#ffedd5", "#fee2e2"
COLOURS = {
    **dict.fromkeys(("runtime", "tensor"), RED),
    **dict.fromkeys(("step", "engine"), ORANGE),
    **dict.fromkeys(("table", "coords", "device", "cuda"), YELLOW),
    **dict.fromkeys(("backend", "map"), GREEN),
    "fronts": BLUE,
}
LONGEST = 105  # letters of a line in the picture of the layers
CELL, BOX = "#334155", 24  # the colour of outlines, the height of a cell


def plain(text: str) -> str:
    """Markdown without links and code marks; an ellipsis shows where it got too long for one line."""
    text = re.sub(r" ?\(\[.*?\]\(.*?\)\)|: \[.*?\]\(.*?\)$", "", text)
    text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).replace("`", "")
    text, whole = text.strip(), len(text.strip())
    while len(text) > LONGEST:
        text = text.rpartition(";" if ";" in text else ",")[0] or text[:LONGEST]
    return text + " …" if len(text) < whole else text


def label(x: float, y: float, text: str, **style: object) -> str:
    words = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x}" y="{y}"{words}>{escaped}</text>'


def picture(width: int, height: int, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
    )
    head += (
        'font-family="sans-serif" font-size="14"><rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def layers() -> str:
    page = (DOCS / "architecture.md").read_text()
    table = page.partition("\n## Layers\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    parts = []
    title = "The layers of tensorhash. A layer knows all layers below it, unless it says otherwise."
    parts.append(label(10, 26, title, font_weight="bold"))
    for at, (name, _, knows, what) in enumerate(reversed(rows)):
        y, name, knows = 42 + 44 * at, plain(name.strip()), plain(knows.strip())
        colour = COLOURS.get(name, LILAC)
        parts.append(
            f'<rect x="10" y="{y}" width="780" height="40" rx="6" fill="{colour}" stroke="{CELL}"/>'
        )
        parts.append(label(24, y + 17, name, font_weight="bold"))
        parts.append(label(24, y + 33, plain(what.strip()), fill="#475569", font_size=12.5))
        if knows != "all above":
            known = "knows no other layer" if knows == "nothing" else f"knows only {knows}"
            parts.append(label(776, y + 17, known, fill="#475569", font_size=12, text_anchor="end"))
    return picture(800, 48 + 44 * len(rows), parts)


def column(x: int, width: int, cells: list[str], colour: str, chosen: int) -> list[str]:
    parts = []
    for at, text in enumerate(cells):
        y, fill = 38 + BOX * at, AMBER if at == chosen else colour
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}" fill="{fill}" stroke="{CELL}"/>'
        )
        mono = {"text_anchor": "middle", "font_family": "monospace", "font_size": 12}
        parts.append(label(x + width / 2, y + 16, text, **mono))
    return parts


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#0369a1" stroke-width="2" '
    return line + 'marker-end="url(#head)"/>'


def lookup() -> str:
    """A key of three int32: a wide key, so its bucket has eight slots."""
    keys = ["( 0, 1, 0)", "(-1, 2, 3)", "( 3, 4, 1)", "( 0, 1, 0)"]
    slots = ["", "a1f3 → 2", "9e37 → 1", "", "c04d → 0", "", "", ""]
    titles = {
        14: "keys",
        160: "hash",
        310: "bucket of slots",
        520: "key buffer",
        640: "value tensors",
    }
    parts = [
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z" fill="#0369a1"/></marker></defs>'
    ]
    parts += [label(x, 26, title, font_weight="bold") for x, title in titles.items()]
    parts += column(14, 96, keys, BLUE, 1)
    parts.append(
        f'<rect x="160" y="62" width="90" height="24" rx="12" fill="{YELLOW}" stroke="{CELL}"/>'
    )
    parts.append(
        label(205, 79, "9e37…6a", text_anchor="middle", font_family="monospace", font_size=12)
    )
    parts += column(310, 130, slots, YELLOW, 2)
    parts += column(520, 96, [*keys[:3], "·", "·"], GREEN, 1)
    parts += column(640, 70, ["0.9", "0.1", "0.3", "·", "·"], GREEN, 1)
    parts += column(720, 84, ["0 255 0", "255 255 0", "255 0 0", "·", "·"], GREEN, 1)
    small = {"fill": "#475569", "font_size": 12.5}
    for at in range(5):
        parts.append(
            label(512, 54 + BOX * at, str(at), text_anchor="end", fill="#475569", font_size=11)
        )
    parts += [arrow(110, 74, 158, 74), arrow(250, 74, 308, 98), arrow(440, 98, 500, 76)]
    parts.append(label(14, 160, "a batch: rows in order,", **small))
    parts.append(label(14, 177, "the first of equal keys wins", **small))
    parts.append(label(520, 180, "row = buffer index: what insert and find return", **small))
    parts.append(label(310, 252, "one 64-byte bucket answers most lookups", **small))
    return picture(840, 266, parts)


if __name__ == "__main__":
    (DOCS / "pictures" / "layers.svg").write_text(layers())
    (DOCS / "pictures" / "lookup.svg").write_text(lookup())
