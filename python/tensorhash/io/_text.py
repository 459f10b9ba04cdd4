"""Rows of numbers in text: parsed in one piece, and checked so that each error names its line."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from tensorhash._types import NumPyArray

_NEWLINE = 10
_BLANK = 32  # this byte and those below separate numbers


class Lines(NamedTuple):
    """Text cut into lines."""

    text: bytes
    starts: NumPyArray  #: int64: the first byte of each line
    tokens: NumPyArray  #: int64: the number of words in each line

    def numbers(self) -> NumPyArray:
        """The numbers of the lines that are not blank, counted from 0."""
        return np.flatnonzero(self.tokens)

    def line(self, number: int) -> bytes:
        """One line without its end."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].strip()


def split(text: bytes) -> Lines:
    """Finds the lines of a text and counts the words in each."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE) + 1
    starts = np.concatenate([np.zeros(1, np.int64), ends[ends < len(data)]])
    begins = data > _BLANK
    begins[1:] &= data[:-1] <= _BLANK
    tokens = np.add.reduceat(begins, starts, dtype=np.int64) if len(data) else np.zeros(1, np.int64)
    return Lines(text, starts, tokens)


def parse(lines: Lines, chosen: NumPyArray, columns: int, first: int, source: str) -> NumPyArray:
    """float64 [rows, columns] of the chosen lines, which follow each other except for blank ones.

    `first` is the number of the text's first line in its file, for messages.
    """
    wrong = np.flatnonzero(lines.tokens[chosen] != columns)
    if len(wrong):
        number = int(chosen[wrong[0]])
        raise ValueError(
            f"{source}, line {first + number}: expected {columns} numbers, "
            f"got {lines.tokens[number]}: {shown(lines.line(number))}"
        )
    if len(chosen) == 0:
        return np.empty((0, columns))
    values = _floats(_between(lines, chosen, 0, len(chosen)))
    if values is None or len(values) != len(chosen) * columns:
        number = _first_bad(lines, chosen, columns)
        raise ValueError(
            f"{source}, line {first + number}: expected {columns} numbers, "
            f"got {shown(lines.line(number))}"
        )
    return values.reshape(len(chosen), columns)


def _between(lines: Lines, chosen: NumPyArray, low: int, high: int) -> bytes:
    last = int(chosen[high - 1]) + 1
    end = lines.starts[last] if last < len(lines.starts) else len(lines.text)
    return lines.text[lines.starts[chosen[low]] : end]


def _floats(text: bytes) -> NumPyArray | None:
    """All numbers of a text; None if a word is not a number. "1-2" gives two: count them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _first_bad(lines: Lines, chosen: NumPyArray, columns: int) -> int:
    """The first line with a word that is not one number, by bisection."""
    low, high = 0, len(chosen)
    while high - low > 1:
        middle = (low + high) // 2
        values = _floats(_between(lines, chosen, low, middle))
        good = values is not None and len(values) == (middle - low) * columns
        low, high = (middle, high) if good else (low, middle)
    return int(chosen[low])


def is_number(word: bytes) -> bool:
    """Whether a word is one number."""
    values = _floats(word)
    return values is not None and len(values) == 1


def shown(line: bytes) -> str:
    """A line for a message: quoted, and cut if it is long."""
    text = line.decode("ascii", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")


def render(columns: dict[str, NumPyArray]) -> bytes:
    """One line per row, with the fewest digits that give back the same numbers."""
    words = [_words(values) for values in columns.values()]
    rows = map(" ".join, zip(*words, strict=True))
    text = "\n".join(rows)
    return (text + "\n").encode() if text else b""


def _words(values: NumPyArray) -> list[str]:
    if values.dtype.kind in "iub":
        return list(
            map(str, values.astype(np.int64 if values.dtype.kind != "u" else np.uint64).tolist())
        )
    if values.dtype == np.float64:
        return list(map(repr, values.tolist()))
    words: list[str] = values.astype("U32").tolist()
    return words
