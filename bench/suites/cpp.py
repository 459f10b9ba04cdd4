"""The engine through its C++ interface beside other C++ maps, measured by build/bench/tensorhash-bench."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from harness import keys, machine, process
from harness.case import Case, Sample, Scale, rows_text
from harness.keys import CONSTRUCT, HIT, INSERT, MISS, KeyKind
from harness.report import GATHER, beside
from harness.store import BUILD
from peers import optional

TITLE = "C++ maps"
ABOUT = """
Random keys with an int64 value. Every map is made for its number of keys. With several threads, only operations that
a map allows from several threads are measured. The gather limit is as above. The scatter limit does what an insert
must also do: it writes the bucket and copies keys and values. `std` and `tbb` would take minutes, so they have at most
10^6 rows, and only int64 and int32x3 keys. Above 10^6 rows, peers have one thread.
[cpp/README.md](cpp/README.md) has the details.
"""
BINARY = BUILD / "tensorhash-bench"
ROWS = {
    keys.INT64: (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    keys.INT32X3: (1_000_000, 10_000_000),
    keys.INT32X4: (1_000_000,),
    keys.BYTES16: (1_000_000,),
    keys.BYTES64: (1_000_000, 10_000_000),
}
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


def cases(scale: Scale) -> list[Case]:
    counts = sorted({1, machine.threads()})
    every = [(kind, rows, t) for kind in keys.KINDS for t in counts for rows in ROWS[kind]]
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
    """The peers that end in reasonable time."""
    main_keys = kind in (keys.INT64, keys.INT32X3)
    if not scale.full:
        return FAST
    if rows > 1_000_000:
        return FAST if threads == 1 and main_keys else ()
    return tuple(PEERS) if main_keys else FAST


def measure(scale: Scale, kind: KeyKind, rows: int, threads: int) -> list[Sample]:
    """Erasures of many rows are measured without peers: each round fills their tables again."""
    rounds = min(31, scale.rounds(rows))
    others = peers(scale, kind, rows, threads)
    verbs = OPERATIONS if scale.full and rows <= 1_000_000 else VERBS
    budget = scale.budget / len(OPERATIONS) / max(1, len(others))
    lines = run(kind, rows, threads, verbs, rounds, others, budget)
    if scale.full and "erase" not in verbs:
        lines += run(kind, rows, threads, ["erase"], rounds)
    made = list(read(kind, lines))
    ran = {sample.contender for sample in made}
    for peer in others:
        if threads == 1 and PEERS[peer] not in ran:
            optional.leave_out(f"{PEERS[peer]} (in C++)")
    return made


def run(
    kind: KeyKind,
    rows: int,
    threads: int,
    operations: Iterable[str],
    rounds: int,
    beside: Iterable[str] = (),
    budget: float = 1.0,
) -> list[str]:
    """Runs tensorhash-bench and returns the lines that it prints. A peer that has used `budget`
    seconds of an operation skips its other rounds."""
    if not BINARY.exists():
        raise FileNotFoundError(f"{BINARY} does not exist: tools/build-bench makes it")
    command = [str(BINARY), "--key", kind.name, "--rows", str(rows), "--threads", str(threads)]
    command += ["--op", ",".join(operations), "--rounds", str(rounds)]
    command += ["--budget", f"{max(budget, 0.001):.3f}", "--peers", ",".join(beside) or "none"]
    return process.run(command).splitlines()


def read(kind: KeyKind, lines: list[str]) -> Iterator[Sample]:
    """The lines as samples. Of the two gathers it keeps the one that limits the operation."""
    for line in map(json.loads, lines):
        operation = OPERATIONS[line["op"]]
        labels = {"key": kind.name, "rows": line["rows"], "threads": line["threads"]}
        contender = PEERS.get(line["contender"], line["contender"])
        if contender.startswith(GATHER):
            if contender != ("gather2" if kind.lines(operation) == 2 else GATHER):
                continue
            contender = GATHER
        yield Sample(contender, {**labels, "operation": operation}, line["seconds"])


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
