"""Convert a point cloud, or a table between .thash and .npz; suffixes pick the formats."""

from __future__ import annotations

import argparse
import os
from typing import Any

from tensorhash import io
from tensorhash.cli import _clouds, _kinds, _output


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    _clouds.add_input(parser)
    _clouds.add_output(parser, "file to write", is_required=True)
    _clouds.add_encoding(parser)
    _output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads and writes."""
    with _output.Progress(2) as progress:
        kind = _kinds.kind_of(options.input)
        if kind in ("HashMap", "npz table"):
            facts: dict[str, Any] = _convert_table(options, progress)
        elif kind != "cloud":
            raise ValueError(
                f"{options.input}: expected a point cloud, or a table of a HashMap or HashSet, "
                f"got a {kind}"
            )
        else:
            with progress.step(f"reading {options.input}"):
                cloud = _clouds.read(options)
            with progress.step(f"writing {options.output}"):
                io.write(options.output, cloud, encoding=options.encoding)
            facts = {"rows": len(cloud.points), "columns": ["x", "y", "z", *cloud.attributes]}
    facts = {"input": options.input, "output": options.output, **facts}
    text = f"wrote {options.output}: {facts['rows']:,} rows of {', '.join(facts['columns'])}"
    _output.give(options, facts, text)
    return 0


def _convert_table(options: argparse.Namespace, progress: _output.Progress) -> dict[str, Any]:
    if os.path.splitext(options.output)[1].lower() not in (".thash", ".npz"):
        raise ValueError(
            f"output: expected a name that ends in .thash or .npz, because {options.input} is a "
            f"table, got {options.output!r}"
        )
    if options.encoding or options.drop_invalid:
        name = "--encoding" if options.encoding else "--drop-invalid"
        raise ValueError(f"{name}: expected a point cloud, but {options.input} is a table")
    with progress.step(f"reading {options.input}"):
        table = _kinds.load_map(options.input)
    with progress.step(f"writing {options.output}"):
        table.save(options.output)
    columns = [f"value {number}" for number in range(len(table._table.value_elements))]
    return {"rows": len(table), "columns": ["key", *columns]}
