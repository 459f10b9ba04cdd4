"""PLY files: a text header that describes elements, then their rows in text or binary.

The sizes in the header are checked against the size of the file before anything is allocated.
Errors name the line of the header or of the text, or the byte of binary data.
"""

from __future__ import annotations

from typing import IO, NamedTuple

import numpy as np

from tensorhash._types import NumPyArray
from tensorhash.io import _text
from tensorhash.io._cloud import PointCloud, cloud_of, columns_of
from tensorhash.io._ply_header import ORDERS, Header, PlyElement, read_header, type_name


class Body(NamedTuple):
    """What follows a header: the file, its size and where the rows begin."""

    file: IO[bytes]
    size: int
    header: Header
    source: str


def read(file: IO[bytes], size: int, source: str) -> PointCloud:
    """Reads the vertices of a PLY file as points. Other elements are skipped."""
    body = Body(file, size, read_header(file, size, source), source)
    return cloud_of(read_columns(body, element(body, "vertex")), source)


def read_columns(body: Body, wanted: PlyElement) -> dict[str, NumPyArray]:
    """The columns of an element without lists."""
    if body.header.encoding == "ascii":
        return read_text(body, wanted)
    return _read_binary(body, wanted)


def element(body: Body, name: str) -> PlyElement:
    """The element of this name; ValueError lists those of the file."""
    for candidate in body.header.elements:
        if candidate.name == name:
            return candidate
    names = ", ".join(candidate.name for candidate in body.header.elements)
    raise ValueError(f"{body.source}: expected an element {name!r}, got {names or 'none'}")


def _read_binary(body: Body, element: PlyElement) -> dict[str, NumPyArray]:
    start = start_of(body, element)
    dtype = row_dtype(body, element)
    rows = _rows(body, start, element.rows, dtype, element.name)
    _require_end(body)
    return {
        name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in dtype.names or ()
    }


def row_dtype(body: Body, element: PlyElement) -> np.dtype[np.void]:
    """The packed dtype of one row; ValueError if the element has lists."""
    order = ORDERS[body.header.encoding]
    for item in element.properties:
        if item.count_type is not None:
            raise ValueError(
                f"{body.source}, line {item.line}: expected a number per {element.name}, "
                f"got the list {item.name!r}"
            )
    return np.dtype([(item.name, item.type.newbyteorder(order)) for item in element.properties])


def start_of(body: Body, wanted: PlyElement) -> int:
    """The byte where the rows of an element begin, after those of the elements before it."""
    start = body.header.end
    for element in body.header.elements:
        if element is wanted:
            break
        if any(item.count_type is not None for item in element.properties):
            raise ValueError(
                f"{body.source}, line {element.line}: expected the element {wanted.name!r} before "
                f"{element.name!r}, because lists have no fixed length"
            )
        start += element.rows * row_dtype(body, element).itemsize
    return start


def _rows(body: Body, start: int, count: int, dtype: np.dtype[np.void], what: str) -> NumPyArray:
    end = start + count * dtype.itemsize
    if end > body.size:
        raise ValueError(
            f"{body.source}: expected {count} rows of {what!r} up to byte {end}, "
            f"but the file ends at byte {body.size}"
        )
    body.file.seek(start)
    rows = np.fromfile(body.file, dtype, count)
    if len(rows) != count:
        raise ValueError(f"{body.source}: was truncated while it was read")
    return rows


def _require_end(body: Body) -> None:
    """ValueError if the file is longer than its header says. With lists this is not known."""
    elements = body.header.elements
    if any(item.count_type is not None for element in elements for item in element.properties):
        return
    end = body.header.end
    end += sum(element.rows * row_dtype(body, element).itemsize for element in elements)
    if body.size != end:
        raise ValueError(
            f"{body.source}: expected the file to end at byte {end}, but it ends at byte "
            f"{body.size}"
        )


def read_triangles(body: Body, element: PlyElement) -> NumPyArray:
    """int64 [T, 3]: the first list of a binary element, which must have three items in each row."""
    start = start_of(body, element)
    order = ORDERS[body.header.encoding]
    fields: list[tuple[str, np.dtype[np.generic], int]] = []
    for item in element.properties:
        kind = item.type.newbyteorder(order)
        if item.count_type is not None:
            fields.append((f"{item.name}#", item.count_type.newbyteorder(order), 1))
        fields.append((item.name, kind, 3 if item.count_type is not None else 1))
    rows = _rows(body, start, element.rows, np.dtype(fields), element.name)
    lists = [item for item in element.properties if item.count_type is not None]
    for item in lists:
        lengths = rows[f"{item.name}#"].reshape(-1)
        other = np.flatnonzero(lengths != 3)
        if len(other):
            raise ValueError(
                f"{body.source}: expected 3 items in each list {item.name!r}, "
                f"got {lengths[other[0]]} in row {other[0]} at byte "
                f"{start + int(other[0]) * rows.dtype.itemsize}"
            )
    return rows[lists[0].name].astype(np.int64)


def read_text(body: Body, wanted: PlyElement) -> dict[str, NumPyArray]:
    """The columns of an element in text. Lists must have three items: they become [rows, 3]."""
    body.file.seek(body.header.end)
    lines = _text.split(body.file.read(body.size - body.header.end))
    filled = lines.numbers()
    total = sum(element.rows for element in body.header.elements)
    if len(filled) != total:
        raise ValueError(
            f"{body.source}: expected {total} lines of data after line {body.header.lines}, "
            f"got {len(filled)}"
        )
    start = 0
    for element in body.header.elements:
        chosen = filled[start : start + element.rows]
        if element is wanted:
            first = body.header.lines + 1
            return _text_columns(element, lines, chosen, first, body.source)
        start += element.rows
    raise AssertionError(wanted.name)


def _text_columns(
    element: PlyElement, lines: _text.Lines, chosen: NumPyArray, first: int, source: str
) -> dict[str, NumPyArray]:
    width = sum(1 if item.count_type is None else 4 for item in element.properties)
    values = _text.parse(lines, chosen, width, first, source)
    columns: dict[str, NumPyArray] = {}
    at = 0
    for item in element.properties:
        wide = 1 if item.count_type is None else 3
        if wide == 3:
            _require_exact(values[:, at] == 3, "a list of 3 items", lines, chosen, first, source)
            at += 1
        part = values[:, at : at + wide]
        with np.errstate(over="ignore", invalid="ignore"):
            column = part.astype(item.type)
        if item.type.kind != "f":
            exact = (column == part).all(axis=1)
            expected = f"an {item.type} as {item.name!r}"
            _require_exact(exact, expected, lines, chosen, first, source)
        columns[item.name] = column if wide == 3 else column[:, 0]
        at += wide
    return columns


def _require_exact(
    good: NumPyArray,
    expected: str,
    lines: _text.Lines,
    chosen: NumPyArray,
    first: int,
    source: str,
) -> None:
    bad = np.flatnonzero(~good)
    if len(bad):
        number = int(chosen[bad[0]])
        raise ValueError(
            f"{source}, line {first + number}: expected {expected}, "
            f"got {_text.shown(lines.line(number))}"
        )


def write(
    file: IO[bytes],
    cloud: PointCloud,
    encoding: str,
    triangles: NumPyArray | None = None,
) -> None:
    """Writes points, or vertices and triangles, in one of the three encodings."""
    columns = {name: _narrowed(name, v) for name, v in columns_of(*cloud).items()}
    lines = ["ply", f"format {encoding} 1.0", "comment written by tensorhash"]
    lines.append(f"element vertex {len(cloud.points)}")
    lines += [f"property {type_name(values.dtype)} {name}" for name, values in columns.items()]
    if triangles is not None:
        lines.append(f"element face {len(triangles)}")
        lines.append("property list uchar int vertex_indices")
    lines.append("end_header")
    file.write("".join(f"{line}\n" for line in lines).encode())
    if encoding == "ascii":
        file.write(_text.render(columns))
        if triangles is not None:
            faces = {str(i): triangles[:, i] for i in range(3)}
            file.write(_text.render({"count": np.full(len(triangles), 3), **faces}))
        return
    _write_rows(file, columns, encoding)
    if triangles is not None:
        rows = np.empty(len(triangles), [("count", "u1"), ("rows", f"{ORDERS[encoding]}i4", 3)])
        rows["count"], rows["rows"] = 3, triangles
        file.write(rows.data)


def _write_rows(file: IO[bytes], columns: dict[str, NumPyArray], encoding: str) -> None:
    order = ORDERS[encoding]
    dtype = np.dtype([(name, v.dtype.newbyteorder(order)) for name, v in columns.items()])
    rows = np.empty(len(next(iter(columns.values()))), dtype)
    for name, values in columns.items():
        rows[name] = values
    file.write(rows.data)


def _narrowed(name: str, values: NumPyArray) -> NumPyArray:
    """A column in a dtype that PLY knows. ValueError if a number does not fit."""
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype.itemsize <= 4 or values.dtype == np.float64:
        return values
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for dtype in (np.int32, np.uint32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return values.astype(dtype)
    raise ValueError(
        f"attributes[{name!r}]: expected integers of 32 bits, which is what PLY has, "
        f"got {low} to {high}; write .npz instead"
    )
