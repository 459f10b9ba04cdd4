"""The header of a PLY file."""

from __future__ import annotations

from typing import IO, Any, Literal, NamedTuple

import numpy as np

from tensorhash.io._text import shown

#: The byte order of each encoding, as NumPy writes it.
ORDERS: dict[str, Literal["=", "<", ">"]] = {
    "ascii": "=",
    "binary_little_endian": "<",
    "binary_big_endian": ">",
}
_TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "float": "f4",
    "double": "f8",
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "float32": "f4",
    "float64": "f8",
}
_MAX_LINE = 1000
_MAX_LINES = 10_000


class Property(NamedTuple):
    """One column of an element; a list if it has a type of its count."""

    name: str
    type: np.dtype[Any]
    count_type: np.dtype[Any] | None
    line: int


class PlyElement(NamedTuple):
    """A table of the file."""

    name: str
    rows: int
    properties: list[Property]
    line: int


class Header(NamedTuple):
    """What the header says."""

    encoding: str
    elements: list[PlyElement]
    end: int  #: the first byte after the header
    lines: int  #: the number of lines in the header


def type_name(dtype: np.dtype[Any]) -> str:
    """PLY's name of a dtype."""
    return next(name for name, code in _TYPES.items() if np.dtype(code) == dtype)


def read_header(file: IO[bytes], size: int, source: str) -> Header:
    """Reads the header. ValueError names the line that is wrong."""
    encoding = ""
    elements: list[PlyElement] = []
    for number in range(1, _MAX_LINES + 1):
        line = file.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            if len(line) == _MAX_LINE:
                raise ValueError(
                    f"{source}, line {number}: expected a line of the header, "
                    f"got more than {_MAX_LINE} bytes"
                )
            raise ValueError(f"{source}: the header ends in line {number} without end_header")
        text = line.strip()
        words = text.decode("ascii", "backslashreplace").split()
        where = f"{source}, line {number}"
        if number == 1:
            if text != b"ply":
                raise ValueError(f"{where}: expected 'ply', got {shown(text)}")
        elif not words or words[0] in ("comment", "obj_info"):
            continue
        elif words[0] == "end_header":
            return _checked(Header(encoding, elements, file.tell(), number), size, source)
        elif words[0] == "format":
            encoding = _encoding(words, where, text)
        elif words[0] == "element":
            elements.append(_element(words, number, where, text, elements))
        elif words[0] == "property" and elements:
            elements[-1].properties.append(_property(words, number, where, text, elements[-1]))
        else:
            raise ValueError(f"{where}: expected a line of a PLY header, got {shown(text)}")
    raise ValueError(f"{source}: expected a header of at most {_MAX_LINES} lines")


def _checked(header: Header, size: int, source: str) -> Header:
    if not header.encoding:
        raise ValueError(f"{source}: the header has no line 'format'")
    for element in header.elements:
        # Text is counted line by line later; a binary row takes its types, lists being empty.
        kinds = [item.count_type or item.type for item in element.properties]
        row = sum(kind.itemsize for kind in kinds) if header.encoding != "ascii" else 1
        need = element.rows * max(1, row)
        if need > size - header.end:
            raise ValueError(
                f"{source}, line {element.line}: {element.rows} rows of {element.name!r} need "
                f"at least {need} bytes after byte {header.end}, but the file ends at byte {size}"
            )
    return header


def _encoding(words: list[str], where: str, text: bytes) -> str:
    if len(words) != 3 or words[1] not in ORDERS or words[2] != "1.0":
        raise ValueError(
            f"{where}: expected 'format', one of {', '.join(ORDERS)}, and '1.0', got {shown(text)}"
        )
    return words[1]


def _element(
    words: list[str], number: int, where: str, text: bytes, others: list[PlyElement]
) -> PlyElement:
    if len(words) != 3 or not words[2].isdecimal() or len(words[2]) > 18:
        raise ValueError(f"{where}: expected 'element NAME COUNT', got {shown(text)}")
    if any(element.name == words[1] for element in others):
        raise ValueError(f"{where}: the element {words[1]!r} is there twice")
    return PlyElement(words[1], int(words[2]), [], number)


def _property(
    words: list[str], number: int, where: str, text: bytes, element: PlyElement
) -> Property:
    is_list = len(words) == 5 and words[1] == "list"
    types = words[2:4] if is_list else words[1:2]
    if not (is_list or len(words) == 3) or any(word not in _TYPES for word in types):
        raise ValueError(
            f"{where}: expected 'property TYPE NAME' or 'property list TYPE TYPE NAME', "
            f"got {shown(text)}"
        )
    if any(item.name == words[-1] for item in element.properties):
        raise ValueError(f"{where}: the property {words[-1]!r} is there twice")
    if is_list and np.dtype(_TYPES[types[0]]).kind == "f":
        raise ValueError(f"{where}: expected an integer as the type of a count, got {types[0]}")
    count_type = np.dtype(_TYPES[types[0]]) if is_list else None
    return Property(words[-1], np.dtype(_TYPES[types[-1]]), count_type, number)
