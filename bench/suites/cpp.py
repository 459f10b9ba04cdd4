"""The engine through its C++ interface beside other C++ maps, measured by build/bench/tensorhash-bench."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial

from harness import keys, machine
from harness.case import Case, Sample, Scale, rows_text
from harness.keys import CONSTRUCT, HIT, INSERT, MISS, KeyKind
from harness.report import GATHER, beside
from harness.store import BUILD

TITLE = "C++ maps"
ABOUT = """
Random keys with an int64 value; every map is made for its number of keys. On more than one thread only the operations
that a map allows from several. The gather limit as above; [cpp/README.md](cpp/README.md) has the details.
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


def asked(kind: KeyKind, rows: int, threads: int) -> tuple[list[str], list[str]]:
    """(operations, peers). Ten million keys take the peers minutes: two kinds, on one thread, where it counts."""
    if rows <= 1_000_000:
        return list(OPERATIONS), list(PEERS)
    peers = {keys.INT64: list(PEERS), keys.INT32X3: ["absl", "boost"]}.get(kind, [])
    return ["insert", "find_hit", "find_miss"], peers if threads == 1 else []


def measure(scale: Scale, kind: KeyKind, rows: int, threads: int) -> list[Sample]:
    if not BINARY.exists():
        raise FileNotFoundError(f"{BINARY} is not there: tools/build-bench makes it")
    operations, peers = asked(kind, rows, threads)
    rounds = min(scale.rounds(rows), 3 if peers and rows > 1_000_000 else 31)
    command = [str(BINARY), "--key", kind.name, "--rows", str(rows), "--threads", str(threads)]
    command += ["--op", ",".join(operations), "--rounds", str(rounds)]
    done = subprocess.run(
        [*command, "--peers", ",".join(peers) or "none"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return list(read(kind, done.stdout.splitlines()))


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
