"""Instructions per row of the calls that have goals, counted by callgrind: they bound what memory does not."""

from __future__ import annotations

import shutil

from harness.callgrind import counted
from harness.case import Case, Sample, Scale
from harness.report import OURS, markdown, number
from harness.store import BUILD
from peers import optional

TITLE = "Instructions"
ABOUT = """
Instructions per row of one call, counted by callgrind: one thread, the program
[instructions.cpp](cpp/instructions.cpp), which has fewer rows than the timed cases. A row is a key, a query or a point;
for kernel maps it is a pair. Counts do not depend on the load of the machine, and several threads execute a little
more. A goal that is missed names those that bound it.
"""
PROGRAM = BUILD / "tensorhash-instructions"
_VERBS = ("insert", "find (hit)", "find (miss)", "erase")
OPERATIONS = (
    *(f"{verb}, {key}" for key in ("int64", "int32x3", "bytes64") for verb in _VERBS),
    *(f"insert, each key 8 times, {key}" for key in ("int64", "int32x3")),
    *(
        f"{verb}, 10^{digits} keys"
        for digits in (3, 4)
        for verb in ("insert", "find (hit)", "erase")
    ),
    *(
        f"{verb}, {table}"
        for table in ("1 table", "2 shards")
        for verb in ("insert", "find", "get", "erase")
    ),
    *(f"group-by sum, {groups}" for groups in ("1,000 groups", "five rows per group")),
    "left join",
    "unique, int32x3",
    "StringIndex",
    "kNN, k = 8",
    "radius 0.3",
    "voxel_downsample",
    *(f"kernel map {size}^3, per pair" for size in (3, 5, 7)),
)
# One seed, because it decides which keys share a bucket.
SETTINGS = {"TENSORHASH_NUM_THREADS": "1", "TENSORHASH_SEED": "1"}


def cases(scale: Scale) -> list[Case]:
    return [Case("instructions/callgrind", measure)]


def measure(scale: Scale) -> list[Sample]:
    if not PROGRAM.exists():
        raise FileNotFoundError(f"{PROGRAM} does not exist: tools/build-bench makes it")
    if shutil.which("valgrind") is None:
        optional.leave_out("valgrind")
        return []
    _, counts = counted(PROGRAM, SETTINGS, headers=1)
    named = [(*line.split("\t"), total) for line, total in counts.items()]
    found = tuple(operation for operation, *_ in named)
    if found != OPERATIONS:
        raise AssertionError(f"{PROGRAM.name}: expected {OPERATIONS}, got {found}")
    return [
        Sample(OURS, {"operation": operation}, numbers={"per row": total / int(rows)})
        for operation, rows, total in named
    ]


def tables(measured: list[Sample]) -> list[str]:
    lines = [[s.labels["operation"], number(s.numbers["per row"])] for s in measured]
    return markdown(["operation", "instructions per row"], lines)
