"""Show what a file holds: tables, checkpoints and point clouds.

Without --verify only the heads of tables are read. With it the whole file is read, every checksum
is compared, and the table is rebuilt and checked: each key is found at its index.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from tensorhash import io
from tensorhash._disk import open_regular
from tensorhash.bounded import BoundedHashMap
from tensorhash.cli import _clouds, _kinds, _output
from tensorhash.data import StringIndex
from tensorhash.sharded import ShardedHashMap
from tensorhash.sharded_bounded import ShardedBoundedHashMap


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("file", help="a table, a checkpoint or its folder, or a point cloud")
    parser.add_argument("--verify", action="store_true", help="read everything and prove it")
    parser.add_argument(
        "--max-bytes",
        type=int,
        help="memory that --verify may use; in proportion to the file if not given",
    )
    _output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Finds out what the file is, and prints what it holds."""
    kind = _kinds.kind_of(options.file)
    facts: dict[str, Any] = {"file": options.file, "kind": kind}
    facts |= _READERS[kind](options.file, options.verify, options.max_bytes)
    if options.verify:
        facts["verified"] = True
    rows = {name: _shown(value) for name, value in facts.items()}
    _output.give(options, facts, _output.table(rows))
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _native(path: str, kind: str) -> dict[str, Any]:
    with open_regular(path) as file:
        head = _kinds.Head(file, path)
        read = {
            "HashMap": head.map,
            "BoundedHashMap": head.bounded,
            "ShardedHashMap": head.sharded,
            "StringIndex": head.strings,
        }
        return {"bytes": head.size, **read[kind]()}


def _map(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    facts = _native(path, "HashMap")
    if verify:
        _kinds.load_map(path, max_bytes).validate()
    return facts


def _bounded(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    facts = _native(path, "BoundedHashMap")
    if verify:
        BoundedHashMap.load(path, max_bytes=max_bytes).validate()
    return facts


def _sharded(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    facts = _native(path, "ShardedHashMap")
    if verify:
        try:
            ShardedHashMap.load(path, max_bytes=max_bytes).validate()
        except ValueError as error:
            if "ShardedBoundedHashMap's load" not in str(error):
                raise
            ShardedBoundedHashMap.load(path, max_bytes=max_bytes).validate()
    return facts


def _strings(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    facts = _native(path, "StringIndex")
    if verify:
        StringIndex.load(path, max_bytes=max_bytes)
    return facts


def _archive(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    table = _kinds.load_map(path, max_bytes)
    if verify:
        table.validate()
    core = table._table
    return {
        "bytes": os.path.getsize(path),
        "size": len(table),
        "capacity": table.capacity(),
        "key": _kinds.text_of(core.key_element),
        "values": [_kinds.text_of(value) for value in core.value_elements],
    }


def _checkpoint(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    from tensorhash.distributed import load_hash_map
    from tensorhash.distributed.checkpoint import Checkpoint

    found = Checkpoint(path, max_bytes)
    if verify:
        load_hash_map(path, max_bytes=max_bytes).validate()
    return {
        "bytes": sum(file.size for file in found.files),
        "size": found.count,
        "key": _kinds.text_of(found.key),
        "values": [_kinds.text_of(value) for value in found.values],
        "ranks": [file.count for file in found.files],
    }


def _checkpoint_file(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    from tensorhash.distributed.shard_file import ShardFile

    file = ShardFile(path)
    if verify:
        for _ in file.chunks():
            pass
    return {
        "bytes": file.size,
        "size": file.count,
        "key": _kinds.text_of(file.key),
        "values": [_kinds.text_of(value) for value in file.values],
        "rank": file.rank,
    }


def _cloud(path: str, verify: bool, max_bytes: int | None) -> dict[str, Any]:
    try:
        cloud = io.read(path, max_bytes=max_bytes)
    except ValueError as error:
        if "expected a point cloud" not in str(error):
            raise
        raise ValueError(
            f"{path}: expected a table or a checkpoint of tensorhash, or a point cloud "
            f"({', '.join(suffix[1:].upper() for suffix in io.SUFFIXES)})"
        ) from error
    good = _clouds.finite_rows(cloud)
    facts: dict[str, Any] = {
        "bytes": os.path.getsize(path),
        "points": len(cloud.points),
        "dtype": cloud.points.dtype.name,
        "attributes": [
            _kinds.text_of((f"{name} {values.dtype.name}", values.shape[1:]))
            for name, values in cloud.attributes.items()
        ],
    }
    if good.any():
        points = cloud.points[good]
        facts["low"] = [float(number) for number in points.min(axis=0)]
        facts["high"] = [float(number) for number in points.max(axis=0)]
    if not good.all():
        facts["not finite"] = len(good) - int(good.sum())
    return facts


_READERS = {
    "HashMap": _map,
    "BoundedHashMap": _bounded,
    "ShardedHashMap": _sharded,
    "StringIndex": _strings,
    "npz table": _archive,
    "checkpoint": _checkpoint,
    "checkpoint file": _checkpoint_file,
    "cloud": _cloud,
}
