"""One table over ranks against one process: `python bench/distributed.py`, which starts torchrun itself.

Each round runs the ranks together, then rank 0 alone with all the keys, while the others wait.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Clock, median, spread
from report import Report, machine

import tensorhash

VERBS = ("insert", "find", "get", "accumulate", "erase")
DIM = 16


def launch(options: argparse.Namespace) -> int:
    """Runs this file under torchrun; the threads are shared out among the ranks."""
    threads = max(1, tensorhash.get_num_threads() // options.ranks)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    arguments = ["--rows", str(options.rows), "--rounds", str(options.rounds)]
    arguments += ["--write"] * options.write
    launcher += ["--local-addr=127.0.0.1", f"--nproc-per-node={options.ranks}"]
    command = [*launcher, __file__, *arguments]
    settings = {"TENSORHASH_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env={**os.environ, **settings}).returncode


def calls(table: Any, keys: Any, values: Any) -> dict[str, Callable[[], Any]]:
    """What is timed, in this order."""
    return {
        "insert": lambda: table.insert(keys, values),
        "find": lambda: table.find(keys),
        "get": lambda: table.get(keys),
        "accumulate": lambda: table.accumulate(keys, values),
        "erase": lambda: table.erase(keys),
    }


class Messages:
    """Seconds that a table's collectives take: waiting for others included."""

    def __init__(self, table: Any) -> None:
        self.seconds = 0.0
        exchange = table._exchange
        exchange.agree = self._timed(exchange.agree)
        exchange.rows = self._timed(exchange.rows)

    def _timed(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return send(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def one_round(rank: int, ranks: int, keys: Any, values: Any) -> tuple[Clock, Clock, Clock]:
    """(ranks together, messages among that, one process), each by verb."""
    import torch.distributed as dist

    from tensorhash.distributed import DistributedHashMap

    together, messages, alone = Clock(), Clock(), Clock()
    table = DistributedHashMap(None, len(keys), "int64", (), "float32", (DIM,))
    meter = Messages(table)
    for verb, call in calls(table, keys[rank::ranks], values[rank::ranks]).items():
        dist.barrier()
        before = meter.seconds
        with together(verb):
            call()
        messages.times[verb].append(meter.seconds - before)
        dist.barrier()
    if rank == 0:
        one = tensorhash.HashMap(len(keys), "int64", (), "float32", (DIM,))
        own = tensorhash.get_num_threads()
        tensorhash.set_num_threads(own * ranks)
        for verb, call in calls(one, keys, values).items():
            with alone(verb):
                call()
        tensorhash.set_num_threads(own)
    dist.barrier()
    return together, messages, alone


def tell(options: argparse.Namespace, ranks: int, rounds: list[tuple[Clock, ...]]) -> None:
    """Prints the medians, and puts them into bench/results.md if asked to."""
    threads = tensorhash.get_num_threads()
    report = Report("ranks")
    report.add(
        "## One table over ranks",
        "",
        f"{options.rows:.0e} random int64 keys, {DIM} float32 a key; {ranks} ranks under torchrun, each",
        f"with {threads} of the {threads * ranks} threads that one process has; loopback; medians of",
        f"{options.rounds} rounds, in turn. {machine()}.",
        "",
        "| call | one process, ms | ranks, ms | of that messages | spread | ratio |",
        "|---|--:|--:|--:|--:|--:|",
    )
    for verb in VERBS:
        times = [[clock.times[verb][0] for clock in kind] for kind in zip(*rounds, strict=True)]
        together, messages, alone = map(median, times)
        noise = max(spread(times[0]), spread(times[2]))
        report.add(
            f"| {verb} | {alone * 1e3:.1f} | {together * 1e3:.1f} | {messages / together:.0%} "
            f"| ±{noise:.0%} | {alone / together:.2f}x |"
        )
    if options.write:
        report.write()


def main_of_rank(options: argparse.Namespace) -> None:
    """One rank: rank 0 prints."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    keys = rng.integers(-(2**63), 2**63 - 1, options.rows)
    values = rng.normal(size=(options.rows, DIM)).astype(np.float32)
    one_round(rank, ranks, keys[:10_000], values[:10_000])
    rounds = [one_round(rank, ranks, keys, values) for _ in range(options.rounds)]
    if rank == 0:
        tell(options, ranks, rounds)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="keys, over all ranks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write bench/results.md too")
    options = parser.parse_args()
    if "LOCAL_RANK" in os.environ:
        main_of_rank(options)
    else:
        sys.exit(launch(options))


if __name__ == "__main__":
    main()
