"""The search of PackedHashTable beside that of the table with vector keys."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, Round, in_turn, samples
from harness.keys import INT32X4
from harness.report import beside

TITLE = "Packed keys beside vector keys"
ABOUT = """
`PackedHashTable.search` beside `TorchHashTable.search`: int32 [N, 4], distinct voxels in random order, found (hit) or
not found (miss).
"""
PACKED, VECTOR = "PackedHashTable", "TorchHashTable"
SLOT_BYTES = 16  # key and row of the packed table


def cases(scale: Scale) -> list[Case]:
    rows = scale.rows(*scale.pick((100_000, 1_000_000), (1_000_000,)))
    return [Case(f"packed/{rows_text(n)}", partial(measure, rows=n)) for n in rows]


def distinct_coords(rows: int) -> np.ndarray:
    """int32 [rows, 4], distinct, shuffled: two batches of voxels, uniform in a cube."""
    import tensorhash

    rng = np.random.default_rng(1)
    coords = rng.integers(-512, 512, (rows + rows // 8 + 16, 4), dtype=np.int32)
    coords[:, 0] &= 1
    return tensorhash.unique(coords)[:rows].copy()


def measure(scale: Scale, rows: int) -> list[Sample]:
    from peers import gather
    from tensorhash.coords import PackedHashTable, TorchHashTable

    coords = distinct_coords(2 * rows)
    order = np.random.default_rng(2).permutation(rows)
    batches = {"hit": coords[:rows][order], "miss": coords[rows:]}
    made = {
        PACKED: PackedHashTable.from_coords(coords[:rows]),
        VECTOR: TorchHashTable.from_keys(coords[:rows]),
    }
    for queries in batches.values():
        if not np.array_equal(*(table.search(queries) for table in made.values())):
            raise AssertionError(f"the two tables differ for {rows} rows")

    def searches(contender: str) -> Round:
        def one_round(clock: Clock) -> None:
            for name, queries in batches.items():
                with clock(name):
                    made[contender].search(queries)

        return one_round

    rounds = {contender: searches(contender) for contender in made}
    slots = made[PACKED].capacity * SLOT_BYTES
    rounds[gather.NAME] = gather.round_of(INT32X4, batches, index_bytes=slots)
    return samples(in_turn(rounds, scale, scale.rounds(rows)), rows=rows)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured, ours=PACKED)
