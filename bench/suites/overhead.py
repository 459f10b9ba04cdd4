"""Overheads: one call, the import, the memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import keys, process
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import call, in_turn, median, samples
from harness.keys import KeyKind
from harness.report import OURS, grouped, markdown, noise, number

TITLE = "Overheads"
ABOUT = """
A call with few keys on a table of 10^5 int64 keys, with the contender's own arrays. The import in a new process, less
the start of the interpreter. The bytes per entry beyond the key and value buffers of a reserved table. The bytes per
entry, key and value included, by which a separate process grows.
"""
CALLS = 1000
MODULES = ("numpy", "tensorhash", "polars", "torch", "open3d")
INDEX_ROWS = (1_000_000, 10_000_000)


def cases(scale: Scale) -> list[Case]:
    few = [Case(f"overhead/call/{n}", partial(small_calls, rows=n)) for n in (1, 10, 100)]
    memory = [
        Case(f"overhead/memory/{kind.name}/{rows_text(rows)}", partial(entry, kind=kind, rows=rows))
        for kind in scale.pick(keys.KINDS, (keys.INT64, keys.INT32X3))
        for rows in scale.rows(*INDEX_ROWS)
    ]
    # Imports take seconds: they come last and get what the other cases leave.
    return [*few, *memory, Case("overhead/import", imports)]


def small_calls(scale: Scale, rows: int) -> list[Sample]:
    from peers import open3d_cpu, ours, python_dict

    there = keys.INT64.random(scale.rows(100_000)[0], seed=1)
    rounds = {}
    for peer in (ours, open3d_cpu, python_dict):
        table = peer.Table(len(there), keys.INT64)
        table.insert(peer.batch(there), peer.batch(there))
        few = peer.batch(there[:rows])
        rounds[peer.NAME] = call("find", partial(table.find, few), CALLS)
    return samples(in_turn(rounds, scale, 15), what="call", rows=rows)


def imports(scale: Scale) -> list[Sample]:
    def start(program: str) -> Callable[[], Any]:
        return lambda: process.run([sys.executable, "-c", program])

    rounds = {name: call("import", start(f"import {name}")) for name in MODULES}
    rounds["python"] = call("import", start(""))
    return samples(in_turn(rounds, scale, max(1, scale.rounds(1_000_000))), what="import")


def grown(peer: str, rows: int) -> int:
    """Bytes by which a full table of int64 keys and values makes this process grow."""
    import importlib

    module = importlib.import_module(f"peers.{peer}")
    small = keys.INT64.random(1000, seed=2)
    module.Table(1000, keys.INT64).insert(module.batch(small), module.batch(small))
    batch = module.batch(keys.INT64.random(rows, seed=1))
    before = process.resident()
    table = module.Table(rows, keys.INT64)
    table.insert(batch, batch)
    return process.resident() - before


def entry(scale: Scale, kind: KeyKind, rows: int) -> list[Sample]:
    from peers import ours

    held = ours.Table(rows, kind).map.memory_usage()
    beyond = (held["index"] + held["bookkeeping"]) / rows
    labels = {"what": "memory", "key": kind.name, "rows": rows}
    result = [Sample(OURS, labels, numbers={"bytes beyond": beyond})]
    if kind is keys.INT64 and rows <= 1_000_000:
        names = {"tensorhash": "ours", "Open3D": "open3d_cpu", "dict": "python_dict"}
        for contender, peer in names.items():
            total = process.call("suites.overhead:grown", peer, rows) / rows
            result.append(
                Sample(contender, {**labels, "what": "resident"}, numbers={"bytes": total})
            )
    return result


def tables(measured: list[Sample]) -> list[str]:
    by_kind: dict[str, list[Sample]] = {"call": [], "import": [], "memory": [], "resident": []}
    for sample in measured:
        by_kind[sample.labels["what"]].append(sample)
    return [
        *calls_table(by_kind["call"]),
        *imports_table(by_kind["import"]),
        *memory_table(by_kind["memory"]),
        *resident_table(by_kind["resident"]),
    ]


def calls_table(measured: list[Sample]) -> list[str]:
    contenders = list(dict.fromkeys(sample.contender for sample in measured))
    lines = [
        [f"find of {labels['rows']}"]
        + [
            number(median(row[contender].seconds) * 1e6) if contender in row else ""
            for contender in contenders
        ]
        + [noise(row)]
        for labels, row in grouped(measured)
    ]
    return (
        [
            *markdown(["call", *(f"{contender}, µs" for contender in contenders), "spread"], lines),
            "",
        ]
        if lines
        else []
    )


def imports_table(measured: list[Sample]) -> list[str]:
    taken = {sample.contender: median(sample.seconds) for sample in measured}
    lines = [
        [name, f"{(seconds - taken['python']) * 1e3:.0f}"]
        for name, seconds in taken.items()
        if name != "python"
    ]
    return [*markdown(["import", "ms"], lines), ""] if lines else []


def memory_table(measured: list[Sample]) -> list[str]:
    lines = [
        [s.labels["key"], rows_text(s.labels["rows"]), f"{s.numbers['bytes beyond']:.1f}"]
        for s in measured
    ]
    head = ["key", "reserved rows", "bytes beyond key and value"]
    return [*markdown(head, lines), ""] if lines else []


def resident_table(measured: list[Sample]) -> list[str]:
    lines = [
        [s.contender, rows_text(s.labels["rows"]), f"{s.numbers['bytes']:.0f}"] for s in measured
    ]
    return markdown(["resident", "rows", "bytes per entry"], lines) if lines else []
