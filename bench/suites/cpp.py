"""The engine through its C++ interface beside other C++ maps, measured by build/bench/tensorhash-bench."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from harness import keys, machine, process
from harness.case import FULL, Case, Sample, Scale, rows_text
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

FAST, SLOW = ("absl", "boost"), ("std", "tbb")
VERBS = ("insert", "find_hit", "find_miss")


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


@dataclass(frozen=True)
class Run:
    """One call of the binary."""

    operations: Sequence[str]
    peers: Sequence[str]
    rounds: int


def runs(scale: Scale, kind: KeyKind, rows: int, threads: int) -> list[Run]:
    """Ours beside the fast peers; the slow ones take minutes for the rest and have few rounds of their own."""
    rounds = min(31, scale.rounds(rows))
    main_keys = kind in (keys.INT64, keys.INT32X3)
    if scale is not FULL:
        return [Run(VERBS, FAST, rounds)]
    if rows > 1_000_000:
        with_peers = main_keys and threads == 1
        plan = [Run(VERBS, FAST if with_peers else [], rounds)]
        return plan + [Run(VERBS, SLOW, 1)] * (with_peers and kind is keys.INT64)
    plan = [Run(list(OPERATIONS), FAST, rounds)]
    return plan + [Run(VERBS, SLOW, min(rounds, 3 if rows == 1_000_000 else 9))] * main_keys


def measure(scale: Scale, kind: KeyKind, rows: int, threads: int) -> list[Sample]:
    if not BINARY.exists():
        raise FileNotFoundError(f"{BINARY} is not there: tools/build-bench makes it")
    found: dict[tuple[str, str], Sample] = {}
    for run in runs(scale, kind, rows, threads):
        command = [str(BINARY), "--key", kind.name, "--rows", str(rows), "--threads", str(threads)]
        command += ["--op", ",".join(run.operations), "--rounds", str(run.rounds)]
        command += ["--peers", ",".join(run.peers) or "none"]
        for sample in read(kind, process.run(command).splitlines()):
            # Of who took part twice the first run counts: it has more rounds.
            found.setdefault((sample.labels["operation"], sample.who), sample)
    return list(found.values())


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
