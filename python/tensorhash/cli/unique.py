"""Keep the first of equal rows: points of a cloud, or rows of a .npy array.

Points are equal if x, y and z are, or the columns that --by names. The result keeps the order of
the file. The attribute `count` of a cloud has the number of equal points.
"""

from __future__ import annotations

import argparse
from typing import cast

import numpy as np

import tensorhash
from tensorhash import io
from tensorhash._disk import open_regular, replacing, size_of
from tensorhash._npy import read_npy
from tensorhash._types import NumPyArray
from tensorhash.cli import _clouds, _output, _parser_types
from tensorhash.io import PointCloud


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    _clouds.add_input(parser)
    _clouds.add_output(parser, "file to write; without it, only count")
    parser.add_argument(
        "--by",
        type=_parser_types.names,
        default=["x", "y", "z"],
        help="columns, for example x,y,z,label",
    )
    _clouds.add_encoding(parser)
    _output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads, finds the distinct rows, writes."""
    array = _plain_array(options)
    rows, distinct, seconds = _of_cloud(options) if array is None else _of_array(options, array)
    facts = {
        "input": options.input,
        "output": options.output,
        "rows": rows,
        "distinct": distinct,
        "seconds": round(seconds, 6),
    }
    written = f"; wrote {options.output}" if options.output else ""
    text = (
        f"{distinct:,} of {rows:,} rows are distinct, found in {_output.duration(seconds)}{written}"
    )
    _output.give(options, facts, text)
    return 0


def _plain_array(options: argparse.Namespace) -> NumPyArray | None:
    """The array of a .npy file that is no point cloud, such as a column of ids."""
    with open_regular(options.input) as file:
        if file.read(6) != b"\x93NUMPY":
            return None
        file.seek(0)
        try:
            array: NumPyArray = read_npy(file, size_of(file), options.input)
        except TypeError:  # records: a cloud
            return None
    if array.ndim == 0:
        raise ValueError(f"{options.input}: expected rows, got a single number")
    return None if array.ndim == 2 and array.shape[1] == 3 and array.dtype.kind == "f" else array


def _of_array(options: argparse.Namespace, array: NumPyArray) -> tuple[int, int, float]:
    clock = _output.Clock()
    distinct = np.asarray(tensorhash.unique(array))
    seconds = clock.seconds()
    if options.output:
        if not options.output.endswith(".npy"):
            raise ValueError(f"output: expected a name that ends in .npy, got {options.output!r}")
        with replacing(options.output) as file:
            np.save(file, distinct)
    return len(array), len(distinct), seconds


def _of_cloud(options: argparse.Namespace) -> tuple[int, int, float]:
    cloud = _clouds.read(options)
    keys = tuple(_column(cloud, name, options) for name in options.by)
    clock = _output.Clock()
    found = tensorhash.unique(keys, return_index=True, return_counts=True)
    seconds = clock.seconds()
    _, first, counts = cast("tuple[NumPyArray, NumPyArray, NumPyArray]", found)
    if options.output:
        kept = _clouds.take(cloud, first)
        kept.attributes["count"] = counts
        io.write(options.output, kept, encoding=options.encoding)
    return len(cloud.points), len(first), seconds


def _column(cloud: PointCloud, name: str, options: argparse.Namespace) -> NumPyArray:
    if name in ("x", "y", "z"):
        return np.ascontiguousarray(cloud.points[:, "xyz".index(name)])
    values = cloud.attributes.get(name)
    if values is None or values.ndim != 1:
        known = [n for n, v in cloud.attributes.items() if v.ndim == 1]
        raise ValueError(
            f"--by: expected columns of {options.input}, which are "
            f"{', '.join(['x', 'y', 'z', *known])}, got {name!r}"
        )
    return values
