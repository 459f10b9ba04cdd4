"""The verbs of a table, for random keys of all kinds, from 10^3 to 10^7 rows."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from harness import keys
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, in_turn, samples
from harness.keys import CONSTRUCT, HIT, INSERT, MISS, KeyKind
from harness.report import beside
from peers import count

TITLE = "Tables"
ABOUT = """
Random keys, one int64 value per key, `capacity = rows`. `insert` fills a table that exists already; `construct +
insert` also makes it. Finds and erasures use another order than the inserts. Finds of up to 2e6 rows run once before
they are timed. `reserve` doubles the capacity of a full table. Times are medians of whole rounds; contenders take
turns in one process. The spread is half the interquartile range, the largest of the row. The gather limit reads the
same keys, fetches one cache line per key (two for finds and erasures of keys wider than 8 bytes) from memory as large
as the table's, and writes 5 bytes per key. `construct + insert` of pyg-lib's CPUHashMap makes it from its keys.
"""

ROWS = {
    keys.INT64: (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    keys.INT32X3: (10_000, 1_000_000, 10_000_000),
    keys.INT32X4: (1_000_000,),
    keys.BYTES16: (1_000_000,),
    keys.BYTES64: (1_000_000, 10_000_000),
}
QUICK = ((keys.INT64, 10_000), (keys.INT64, 1_000_000), (keys.INT32X3, 1_000_000))
# A round of ten million keys takes Open3D a minute and a dict seconds: one kind of key is enough.
# Open3D does not accept uint8 keys.
OPEN3D_AT_MOST = {
    keys.INT64: 10_000_000,
    keys.INT32X3: 1_000_000,
    keys.BYTES16: 0,
    keys.BYTES64: 0,
}
DICT_AT_MOST = {keys.INT64: 1_000_000, keys.INT32X3: 1_000_000}
OTHERS_AT_MOST = 100_000
# A table of up to this many rows stays in the caches, so its time depends on the previous
# contender.
WARM_AT_MOST = 2_000_000


def cases(scale: Scale) -> list[Case]:
    every = [(kind, rows) for kind in keys.KINDS for rows in ROWS[kind]]
    picked = [(kind, scale.rows(rows)[0]) for kind, rows in scale.pick(every, QUICK)]
    return [
        Case(f"tables/{kind.name}/{rows_text(rows)}", partial(measure, kind=kind, rows=rows))
        for kind, rows in dict.fromkeys(picked)
    ]


class Batches:
    """The arrays for all contenders."""

    def __init__(self, kind: KeyKind, rows: int) -> None:
        self.there, self.missing = kind.random(rows, seed=1), kind.random(rows, seed=2)
        # In insertion order, the cache line of a wide key would often come with its neighbour's.
        self.shuffled = self.there[np.random.default_rng(3).permutation(rows)]
        self.values = np.arange(rows, dtype=np.int64).reshape(-1, 1)


def warm_find(operation: str, table: Any, keys: Any, clock: Clock) -> Any:
    """Times a find with the table in the caches, like the gather limit."""
    if len(keys) <= WARM_AT_MOST:
        table.find(keys)
    with clock(operation):
        return table.find(keys)


def life(peer: ModuleType, kind: KeyKind, batches: Batches) -> Round:
    """A round: all verbs once, from an empty table to an empty table. Checks the counts of the answers."""
    rows = len(batches.there)
    there, missing = peer.batch(batches.there), peer.batch(batches.missing)
    shuffled, values = peer.batch(batches.shuffled), peer.batch(batches.values)

    def one_round(clock: Clock) -> None:
        with clock(CONSTRUCT):
            made = peer.Table(rows, kind)
            made.insert(there, values)
        del made
        table = peer.Table(rows, kind)
        with clock(INSERT):
            inserted = table.insert(there, values)
        found = warm_find(HIT, table, shuffled, clock)
        missed = warm_find(MISS, table, missing, clock)
        with clock("active_buf_indices"):
            active = table.active()
        if hasattr(table, "reserve"):
            with clock("reserve"):
                table.reserve(2 * rows)
        with clock("erase"):
            table.erase(shuffled)
        right = count(found) == rows and count(missed) < rows / 100
        if not right or len(active) != count(inserted) or table.size() != 0:
            raise AssertionError(f"{peer.NAME} gave a wrong answer for {kind.name}, {rows} rows")

    return one_round


def contenders(kind: KeyKind, rows: int) -> dict[str, Round]:
    from peers import gather, open3d_cpu, ours, pyg, python_dict

    batches = Batches(kind, rows)
    limited = {
        CONSTRUCT: batches.there,
        INSERT: batches.there,
        HIT: batches.shuffled,
        MISS: batches.missing,
        "erase": batches.shuffled,
    }
    peers = [ours]
    if rows <= OPEN3D_AT_MOST.get(kind, OTHERS_AT_MOST):
        peers.append(open3d_cpu)
    if rows <= DICT_AT_MOST.get(kind, OTHERS_AT_MOST):
        peers.append(python_dict)
    rounds = {peer.NAME: life(peer, kind, batches) for peer in peers}
    if kind is keys.INT64 and pyg.maker():
        rounds[pyg.NAME] = pyg.life(batches.there, batches.shuffled, batches.missing)
    return {**rounds, gather.NAME: gather.round_of(kind, limited)}


def measure(scale: Scale, kind: KeyKind, rows: int) -> list[Sample]:
    times = in_turn(contenders(kind, rows), scale, scale.rounds(rows))
    return samples(times, key=kind.name, rows=rows)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
