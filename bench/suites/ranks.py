"""One table over ranks beside one process. torchrun runs `main_of_rank`; rank 0 writes the samples.

In each round all ranks run together. Then rank 0 runs alone with all keys while the others wait.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness import machine, process
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import Clock, median, samples
from harness.report import beside

TITLE = "One table over ranks"
ABOUT = """
Random int64 keys with 16 float32 per key. Two ranks under torchrun divide the threads of the one process and talk
over loopback. `messages` is the part of the ranks' time spent in messages, waiting included. The ratio is a multiple
of the one process' time: less is faster.
"""
ROWS, DIM, RANKS = 1_000_000, 16, 2
ONE, TOGETHER = "one process", f"{RANKS} ranks"


def cases(scale: Scale) -> list[Case]:
    return [Case(f"ranks/{rows_text(n)}", partial(measure, rows=n)) for n in scale.rows(ROWS)]


def measure(scale: Scale, rows: int) -> list[Sample]:
    """Starts torchrun and divides the threads among the ranks."""
    threads = str(max(1, machine.threads() // RANKS))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--local-addr=127.0.0.1", f"--nproc-per-node={RANKS}"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "samples.json"
        # Half the rounds: a round has many calls, and the ranks wait for each other.
        arguments = [str(rows), str(max(1, scale.rounds(rows) // 2)), str(out)]
        command = [*launcher, "-m", "suites.ranks", *arguments]
        process.run(command, TENSORHASH_NUM_THREADS=threads, OMP_NUM_THREADS="1")
        return [Sample(**sample) for sample in json.loads(out.read_text())]


def calls(table: Any, keys: Any, values: Any) -> dict[str, Callable[[], Any]]:
    """The timed calls, in this order."""
    return {
        "insert": lambda: table.insert(keys, values),
        "find": lambda: table.find(keys),
        "get": lambda: table.get(keys),
        "accumulate": lambda: table.accumulate(keys, values),
        "erase": lambda: table.erase(keys),
    }


class Messages:
    """Measures the seconds of a table's collectives, waiting included."""

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


def one_round(rank: int, keys: Any, values: Any, clocks: dict[str, Clock]) -> None:
    """All ranks together, messages included; then rank 0 alone."""
    import torch.distributed as dist

    import tensorhash
    from tensorhash.distributed import DistributedHashMap

    table = DistributedHashMap(None, len(keys), "int64", (), "float32", (DIM,))
    meter = Messages(table)
    for verb, work in calls(table, keys[rank::RANKS], values[rank::RANKS]).items():
        dist.barrier()
        before = meter.seconds
        with clocks[TOGETHER](verb):
            work()
        clocks["messages"].times[verb].append(meter.seconds - before)
        dist.barrier()
    if rank == 0:
        one = tensorhash.HashMap(len(keys), "int64", (), "float32", (DIM,))
        own = tensorhash.get_num_threads()
        tensorhash.set_num_threads(own * RANKS)
        for verb, work in calls(one, keys, values).items():
            with clocks[ONE](verb):
                work()
        tensorhash.set_num_threads(own)
    dist.barrier()


def main_of_rank(rows: int, rounds: int, out: Path) -> None:
    """Runs one rank; rank 0 writes. All ranks must run the same rounds, so there is no budget."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rng = np.random.default_rng(0)
    keys = rng.integers(-(2**63), 2**63 - 1, rows)
    values = rng.normal(size=(rows, DIM)).astype(np.float32)
    clocks = {who: Clock() for who in (ONE, TOGETHER, "messages")}
    one_round(rank, keys[:10_000], values[:10_000], {who: Clock() for who in clocks})
    for _ in range(rounds):
        one_round(rank, keys, values, clocks)
    if rank == 0:
        messages = clocks.pop("messages").times
        made = samples({who: clock.times for who, clock in clocks.items()}, rows=rows)
        for sample in made:
            if sample.who == TOGETHER:
                sample.numbers["messages"] = median(messages[sample.labels["operation"]])
        out.write_text(json.dumps([sample.as_json() for sample in made]))
    dist.destroy_process_group()


def tables(measured: list[Sample]) -> list[str]:
    def messages(_: dict, row: dict[str, Sample]) -> str:
        together = row[TOGETHER]
        return f"{together.numbers['messages'] / median(together.seconds):.0%}"

    return beside(measured, ours=ONE, more={"messages": messages})


if __name__ == "__main__":
    main_of_rank(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
