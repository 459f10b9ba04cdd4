"""The engine through its C++ interface beside other C++ maps, measured by build/bench/tensorhash-bench."""

from __future__ import annotations

import json
import subprocess
from functools import partial

from harness import keys, machine
from harness.case import Case, Sample, Scale, rows_text
from harness.report import GATHER, beside
from harness.store import BUILD

TITLE = "C++ maps"
ABOUT = """
Random keys with an int64 value; every map is made for its number of keys. On more than one thread only the operations
that a map allows from several. The gather limit as above: one line a key, two for keys wider than 8 bytes.
"""
BINARY = BUILD / "tensorhash-bench"
ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
OPERATIONS = {
    "construct_insert": "construct + insert",
    "insert": "insert",
    "find_hit": "find (hit)",
    "find_miss": "find (miss)",
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
            partial(measure, key=kind.name, rows=rows, threads=threads),
        )
        for kind, rows, threads in picked
    ]


def asked(key: str, rows: int, threads: int) -> tuple[list[str], list[str]]:
    """(operations, peers). Ten million keys take the peers minutes: two kinds, on one thread, where it counts."""
    if rows <= 1_000_000:
        return list(OPERATIONS), list(PEERS)
    peers = {keys.INT64.name: list(PEERS), keys.INT32X3.name: ["absl", "boost"]}.get(key, [])
    return ["insert", "find_hit", "find_miss"], peers if threads == 1 else []


def measure(scale: Scale, key: str, rows: int, threads: int) -> list[Sample]:
    if not BINARY.exists():
        raise FileNotFoundError(f"{BINARY} is not there: tools/build-bench makes it")
    operations, peers = asked(key, rows, threads)
    rounds = min(scale.rounds(rows), 3 if peers and rows > 1_000_000 else 31)
    command = [str(BINARY), "--key", key, "--rows", str(rows), "--threads", str(threads)]
    command += ["--op", ",".join(operations), "--rounds", str(rounds)]
    done = subprocess.run(
        [*command, "--peers", ",".join(peers) or "none"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    # Keys that are not in the index itself: the limit is two lines.
    limit = "gather2" if any(line["who"] == "gather2" for line in lines) else "gather"
    return [
        Sample(
            GATHER if line["who"] == limit else PEERS.get(line["who"], line["who"]),
            {"key": key, "rows": rows, "threads": threads, "operation": OPERATIONS[line["op"]]},
            line["seconds"],
        )
        for line in lines
        if line["who"] in (limit, "tensorhash", *PEERS)
    ]


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
