"""XYZ: text with one point per line. Also CSV and other tables of numbers in text.

Blanks, tabs, commas or semicolons separate numbers. A line with two kinds of them is refused:
1,5;2,5 could be two numbers or four. `#` and `//` begin comment lines. The first line may name the
columns, in a comment or not. Without names the first three columns are x, y and z, and the others
are called column_3, column_4 and so on.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from tensorhash._types import NumPyArray
from tensorhash.io import _text
from tensorhash.io._cloud import AXES, MOST_COLUMNS, PointCloud, cloud_of, columns_of, names_of
from tensorhash.io._text import Lines

_SEPARATORS = bytes.maketrans(b",;", b"  ")
_COMMENTS = (b"#", b"//")


def read(file: IO[bytes], size: int, source: str) -> PointCloud:
    """Reads the points of a text file."""
    text = file.read(size)
    if b"\0" in text:
        where = text.index(b"\0")
        raise ValueError(f"{source}: expected text, got a zero at byte {where}: not an XYZ file")
    lines = _text.split(text.translate(_SEPARATORS))
    names, lines = _without_comments(lines)
    chosen = lines.numbers()
    if names is None:
        names, chosen = _header(lines, chosen, source)
    _require_one_separator(text, lines, chosen, source)
    values = _text.parse(lines, chosen, len(names), 1, source)
    return cloud_of({name: values[:, i] for i, name in enumerate(names)}, source)


def _require_one_separator(text: bytes, lines: Lines, chosen: NumPyArray, source: str) -> None:
    """ValueError for a line with an empty field, or with two kinds of separators."""
    data = np.frombuffer(text, np.uint8)
    marks = (data == ord(",")) | (data == ord(";"))
    if not marks.any():
        return
    begins = np.frombuffer(lines.text, np.uint8) > 32
    begins[1:] &= ~begins[:-1]
    items = np.flatnonzero(begins | marks)  # numbers and separators, in order
    line = np.searchsorted(lines.starts, items, "right") - 1
    is_mark = marks[items]
    first = np.append(True, line[1:] != line[:-1])
    after_mark = np.append(False, is_mark[:-1]) & ~first
    marked = np.logical_or.reduceat(marks, lines.starts)
    wrong = np.where(is_mark, first | after_mark, marked[line] & ~first & ~after_mark)
    bad = np.logical_or.reduceat(data == ord(","), lines.starts)
    bad &= np.logical_or.reduceat(data == ord(";"), lines.starts)
    bad[line[wrong]] = True
    if bad[chosen].any():
        number = int(chosen[bad[chosen]][0])
        row = Lines(text, lines.starts, lines.tokens).line(number)
        raise ValueError(
            f"{source}, line {number + 1}: expected numbers with the same separator between all of "
            f"them, got {_text.shown(row)}; write decimals with a point, and no empty fields"
        )


def _header(lines: Lines, chosen: NumPyArray, source: str) -> tuple[list[str], NumPyArray]:
    """(names of the columns, lines of numbers): the first line may have names or numbers."""
    if len(chosen) == 0:
        return list(AXES), chosen
    number = int(chosen[0])
    unnamed = names_of(int(lines.tokens[number]), f"{source}, line {number + 1}")
    words = lines.line(number).split()
    return (unnamed, chosen) if _text.is_number(words[0]) else (_names(words), chosen[1:])


def _without_comments(lines: Lines) -> tuple[list[str] | None, Lines]:
    """(names of the columns from the first line, or None; the lines, comments blanked)."""
    data = np.frombuffer(lines.text, np.uint8)
    filled = lines.numbers()
    if len(filled) == 0:
        return None, lines
    # The first byte of each line that is not blank, without a loop over lines.
    begins = np.flatnonzero(data > 32)
    first = begins[np.searchsorted(begins, lines.starts[filled])]
    after = data[np.minimum(first + 1, len(data) - 1)]
    comment = (data[first] == ord("#")) | ((data[first] == ord("/")) & (after == ord("/")))
    if not comment.any():
        return None, lines
    names = None
    if comment[0] and lines.tokens[filled[0]] <= MOST_COLUMNS:
        words = lines.line(int(filled[0])).lstrip(b"#/").split()
        if [word.lower() for word in words[:3]] == [b"x", b"y", b"z"]:
            names = _names(words)
    return names, _blank(lines, data, filled[comment])


def _blank(lines: Lines, data: NumPyArray, numbers: NumPyArray) -> Lines:
    """The same lines with these ones filled with blanks."""
    dropped = np.zeros(len(lines.starts), bool)
    dropped[numbers] = True
    lengths = np.diff(np.append(lines.starts, len(data)))
    kept = np.where(np.repeat(dropped, lengths) & (data != 10), np.uint8(32), data)
    return Lines(kept.tobytes(), lines.starts, np.where(dropped, 0, lines.tokens))


def _names(words: list[bytes]) -> list[str]:
    names = [word.decode("utf-8", "replace").strip("\"'") for word in words]
    lower = [name.lower() if name.lower() in AXES else name for name in names]
    return lower if len(set(lower)) == len(lower) else [f"{n}_{i}" for i, n in enumerate(lower)]


def write(file: IO[bytes], cloud: PointCloud) -> None:
    """Writes a comment with the names of the columns, then one line per point."""
    columns = columns_of(*cloud)
    file.write(f"# {' '.join(columns)}\n".encode())
    file.write(_text.render(columns))
