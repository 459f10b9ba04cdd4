"""The engine through its C++ interface beside other C++ maps, measured by build/bench/tensorhash-bench."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from harness import keys, machine, process
from harness.case import FULL, Case, Sample, Scale, rows_text
from harness.keys import CONSTRUCT, HIT, INSERT, MISS, KeyKind
from harness.report import GATHER, beside
from harness.store import BUILD

TITLE = "C++ maps"
ABOUT = """
Random keys with an int64 value; every map is made for its number of keys. On more than one thread only the operations
that a map allows from several. The gather limit as above. The scatter limit is what an insert must do beside: its line
is written too, and keys and values are copied. Peers that take minutes for the rest, `std` and `tbb`, have part of the
rounds and rows of int64 and int32x3; above 10^6 rows peers have one thread. [cpp/README.md](cpp/README.md) has the
details.
"""
BINARY = BUILD / "tensorhash-bench"
ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
OPERATIONS = {
    "construct_insert": CONSTRUCT,
    "insert": INSERT,
    "find_hit": HIT,
    "find_miss": MISS,
    "erase": "erase",
}
PEERS = {
    "absl": "absl::flat_hash_map",
    "boost": "boost::unordered_flat_map",
    "std": "std::unordered_map",
    "tbb": "tbb::concurrent_unordered_map",
}

FAST = ("absl", "boost")
VERBS = ("construct_insert", "insert", "find_hit", "find_miss")
# Seconds of an operation after which a peer sits out its other rounds.
BUDGET = 1


def cases(scale: Scale) -> list[Case]:
    counts = sorted({1, machine.threads()})
    every = [(kind, rows, t) for kind in keys.KINDS for t in counts for rows in ROWS]
    quick = [(kind, 1_000_000, t) for kind in (keys.INT64, keys.INT32X3) for t in counts]
    picked = {(k, scale.rows(rows)[0], t): None for k, rows, t in scale.pick(every, quick)}
    return [
        Case(
            f"cpp/{kind.name}/{rows_text(rows)}/{threads} thread{'s' * (threads > 1)}",
            partial(measure, kind=kind, rows=rows, threads=threads),
        )
        for kind, rows, threads in picked
    ]


def peers(scale: Scale, kind: KeyKind, rows: int, threads: int) -> Sequence[str]:
    """Those that end in reasonable time."""
    main_keys = kind in (keys.INT64, keys.INT32X3)
    if scale is not FULL:
        return FAST
    if rows > 1_000_000:
        return () if threads > 1 or not main_keys else tuple(PEERS) if kind is keys.INT64 else FAST
    return tuple(PEERS) if main_keys else FAST


def measure(scale: Scale, kind: KeyKind, rows: int, threads: int) -> list[Sample]:
    operations = OPERATIONS if scale is FULL and rows <= 1_000_000 else VERBS
    rounds = min(31, scale.rounds(rows))
    return list(
        read(kind, run(kind, rows, threads, operations, rounds, peers(scale, kind, rows, threads)))
    )


def run(
    kind: KeyKind,
    rows: int,
    threads: int,
    operations: Iterable[str],
    rounds: int,
    beside: Iterable[str] = (),
) -> list[str]:
    """The lines that the program prints."""
    if not BINARY.exists():
        raise FileNotFoundError(f"{BINARY} is not there: tools/build-bench makes it")
    command = [str(BINARY), "--key", kind.name, "--rows", str(rows), "--threads", str(threads)]
    command += ["--op", ",".join(operations), "--rounds", str(rounds)]
    command += ["--budget", str(BUDGET), "--peers", ",".join(beside) or "none"]
    return process.run(command).splitlines()


def read(kind: KeyKind, lines: list[str]) -> Iterator[Sample]:
    """Its lines as samples; of the two gathers the one that is the operation's limit."""
    for line in map(json.loads, lines):
        operation = OPERATIONS[line["op"]]
        labels = {"key": kind.name, "rows": line["rows"], "threads": line["threads"]}
        who = PEERS.get(line["who"], line["who"])
        if who.startswith(GATHER):
            if who != ("gather2" if kind.lines(operation) == 2 else GATHER):
                continue
            who = GATHER
        yield Sample(who, {**labels, "operation": operation}, line["seconds"])


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
