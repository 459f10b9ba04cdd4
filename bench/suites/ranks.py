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
from harness.ranks_model import CHUNK, UNCUT, Network, call, simulate
from harness.report import beside

TITLE = "One table over ranks"
ABOUT = """
Random int64 keys with 16 float32 per key. Two ranks under torchrun divide the threads of the one process; each passes
its own arrays. Ranks on one machine share memory. `gloo` is the same table without it: its messages go over loopback.
`messages` is the part of the ranks' time spent in messages, packing and waiting included. The ratio is a multiple of
the one process' time: less is faster. `model` is the time that harness/ranks_model.py predicts, as a part of the
measured one: the same call in a group of one rank, and messages of constants that messages alone have shown.
"""
ROWS, DIM, RANKS = 1_000_000, 16, 2
ONE, TOGETHER, ALONE = "one process", f"{RANKS} ranks", "a rank alone"
GLOO = f"{RANKS} ranks, gloo"
MODELLED = ("insert", "find", "get", "accumulate")


def cases(scale: Scale) -> list[Case]:
    return [Case(f"ranks/{rows_text(n)}", partial(measure, rows=n)) for n in scale.rows(ROWS)]


def measure(scale: Scale, rows: int) -> list[Sample]:
    """Starts torchrun and divides the threads among the ranks."""
    threads = str(max(1, machine.threads() // RANKS))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--local-addr=127.0.0.1", f"--nproc-per-node={RANKS}"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "samples.json"
        arguments = [str(rows), str(scale.rounds(rows)), str(out)]
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


def new_table(group: Any, rows: int, *, shares: bool = True) -> Any:
    from tensorhash.distributed import DistributedHashMap
    from tensorhash.distributed.neighbours import Neighbours

    table = DistributedHashMap(group, rows, "int64", (), "float32", (DIM,))
    if not shares:
        table._exchange._neighbours = Neighbours()  # none
    return table


def one_round(rank: int, own: Any, keys: Any, values: Any, clocks: dict[str, Clock]) -> None:
    """All ranks together, messages included; each in its `own` group; then rank 0 alone."""
    import torch.distributed as dist

    import tensorhash

    mine = [np.ascontiguousarray(rows[rank::RANKS]) for rows in (keys, values)]

    def together(contender: str, table: Any) -> None:
        meter = Messages(table)
        for verb, work in calls(table, *mine).items():
            dist.barrier()
            before = meter.seconds
            with clocks[contender](verb):
                work()
            if contender == TOGETHER:
                clocks["messages"].times[verb].append(meter.seconds - before)

    together(TOGETHER, new_table(None, len(keys)))
    together(GLOO, new_table(None, len(keys), shares=False))
    together(ALONE, new_table(own, len(mine[0])))
    dist.barrier()
    if rank == 0:
        one = tensorhash.HashMap(len(keys), "int64", (), "float32", (DIM,))
        threads = tensorhash.get_num_threads()
        tensorhash.set_num_threads(threads * RANKS)
        for verb, work in calls(one, keys, values).items():
            with clocks[ONE](verb):
                work()
        tensorhash.set_num_threads(threads)
    dist.barrier()


def network_of(exchange: Any, chunk: int) -> Network:
    """The network's constants, from messages alone."""
    from tensorhash import _core
    from tensorhash.distributed.messages import Column

    def seconds(size: int, columns: int = 1) -> float:
        """Of an exchange of `size` bytes with the other rank, both ways."""
        rows = _core.empty_rows(size, ("uint8", ()))
        sent = [Column(("uint8", ()), rows=rows)] * columns
        counts = [0 if rank == exchange.rank else size for rank in range(RANKS)]
        clock = Clock()
        for _ in range(11):
            exchange.agree("network")  # both start together
            with clock("send"):
                exchange.rows("network", sent, counts, counts)
        return median(clock.times["send"][1:])

    small, many, large = 8, 33, 1 << 25
    message = max(0.0, (seconds(small, many) - seconds(small)) / (many - 1))
    latency = seconds(small) - message
    flight = seconds(large) - latency - max(1, large // chunk) * message
    return Network(latency, message, large / flight, chunk)


def main_of_rank(rows: int, rounds: int, out: Path) -> None:
    """Runs one rank; rank 0 writes. All ranks must run the same rounds, so there is no budget."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    own = [dist.new_group([each]) for each in range(RANKS)][rank]
    rng = np.random.default_rng(0)
    keys = rng.integers(-(2**63), 2**63 - 1, rows)
    values = rng.normal(size=(rows, DIM)).astype(np.float32)
    clocks = {contender: Clock() for contender in (ONE, TOGETHER, GLOO, "messages", ALONE)}
    one_round(
        rank, own, keys[:10_000], values[:10_000], {contender: Clock() for contender in clocks}
    )
    for _ in range(rounds):
        one_round(rank, own, keys, values, clocks)
    networks = {
        TOGETHER: network_of(new_table(None, 0)._exchange, UNCUT),
        GLOO: network_of(new_table(None, 0, shares=False)._exchange, CHUNK),
    }
    if rank == 0:
        messages, alone = (clocks.pop(contender).times for contender in ("messages", ALONE))
        made = samples({contender: clock.times for contender, clock in clocks.items()}, rows=rows)
        for sample in made:
            verb = sample.labels["operation"]
            if sample.contender == TOGETHER:
                sample.numbers["messages"] = median(messages[verb])
                sample.numbers["alone"] = median(alone[verb])
                sample.numbers.update(networks[TOGETHER]._asdict())
            if sample.contender in networks and verb in MODELLED:
                part = rows // RANKS, median(alone[verb]), call(verb, 8, 4 * DIM)
                sample.numbers["model"] = simulate(RANKS, *part, networks[sample.contender])
        out.write_text(json.dumps([sample.as_json() for sample in made]))
    dist.destroy_process_group()


def tables(measured: list[Sample]) -> list[str]:
    def messages(_: dict, row: dict[str, Sample]) -> str:
        together = row[TOGETHER]
        return f"{together.numbers['messages'] / median(together.seconds):.0%}"

    def model(contender: str) -> Callable[[dict, dict[str, Sample]], str]:
        def text(_: dict, row: dict[str, Sample]) -> str:
            together = row[contender]
            predicted = together.numbers.get("model")
            return f"{predicted / median(together.seconds):.0%}" if predicted else ""

        return text

    more = {"messages": messages, "model": model(TOGETHER), "model, gloo": model(GLOO)}
    return beside(measured, ours=ONE, more=more)


if __name__ == "__main__":
    main_of_rank(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
