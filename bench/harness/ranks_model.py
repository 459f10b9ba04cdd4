"""Predicts the time of a distributed call: what one rank computes, plus its messages.

A network has three constants, all from timings of messages: latency, cost per message, bandwidth.
`simulate` plays the messages of all ranks one by one; with two ranks it is a sum that can be
checked by hand. `python -m harness.ranks_model` prints the table of docs/scaling.md.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from typing import NamedTuple

# Bytes per message: as python/tensorhash/distributed/messages.py sends, and for shared memory,
# where all rows for a rank are one message.
CHUNK, UNCUT = 1 << 21, 1 << 62


class Network(NamedTuple):
    latency: float  # seconds from the send of a small message to its arrival
    message: float  # seconds that a rank spends per message
    bandwidth: float  # bytes per second that a rank can send while it receives as many
    chunk: int = CHUNK  # bytes per message


class Call(NamedTuple):
    """The messages of a call: the widths of the columns of each round, the first to the owners."""

    rounds: Sequence[Sequence[int]]
    agreements: int


def call(verb: str, key: int, value: int) -> Call:
    """Of keys of `key` bytes and values of `value` bytes, all of them found."""
    if verb == "get":
        return Call([[key], [value]], 2)
    if verb == "find":
        return Call([[key], [4]], 2)
    return Call([[key, value], [4]], 3)


def simulate(
    ranks: int, rows: int, work: float, sent: Call, network: Network, spread: float = 0.0
) -> float:
    """The seconds until the last rank has its answers.

    Each rank has `rows` keys and computes `work` seconds: half before its rows arrive at their
    owners, half after. `spread` is the standard deviation of a rank's work, relative to it.
    """
    noise = random.Random(0)
    halves = [[max(0.0, noise.gauss(1, spread)) * work / 2 for _ in range(ranks)] for _ in range(2)]
    clock = _agreed(halves[0], network)
    there, *back = [[rows / ranks * width for width in widths] for widths in sent.rounds]
    clock = _all_to_all(clock, there, network)
    clock = [time + more for time, more in zip(clock, halves[1], strict=True)]
    for _ in range(sent.agreements - 1):
        clock = _agreed(clock, network)
    for sizes in back:
        clock = _all_to_all(clock, sizes, network)
    return max(clock)


def _agreed(clock: list[float], network: Network) -> list[float]:
    """Every rank hears a few bytes from every other: all continue after the last one."""
    others = len(clock) - 1
    end = max(clock) + (network.latency + others * network.message if others else 0.0)
    return [end] * len(clock)


def _all_to_all(clock: list[float], sizes: Sequence[float], network: Network) -> list[float]:
    """Every rank sends columns of these sizes to every other, in chunks, the next rank first."""
    ranks = len(clock)
    flights: list[float] = []  # of the messages to one rank
    for size in sizes:
        chunks = max(1, -(-int(size) // network.chunk))
        flights += [size / chunks / network.bandwidth] * chunks
    free_in, end = list(clock), list(clock)
    waiting = [(time, rank, 0) for rank, time in enumerate(clock)]
    heapq.heapify(waiting)
    while waiting and ranks > 1:
        start, rank, number = heapq.heappop(waiting)
        peer = (rank + 1 + number // len(flights)) % ranks
        busy = network.message + flights[number % len(flights)]
        arrived = max(start + network.latency, free_in[peer]) + busy
        free_in[peer] = arrived
        end[peer], end[rank] = max(end[peer], arrived), max(end[rank], start + busy)
        if number + 1 < len(flights) * (ranks - 1):
            heapq.heappush(waiting, (start + busy, rank, number + 1))
    return end


def main() -> None:
    """The messages of calls with 10^6 int64 keys and 16 float32 per rank, without any work."""
    links = [25, 100]  # Gbit/s
    for ranks in (2, 8, 64):
        for verb in ("insert", "get", "accumulate"):
            networks = [Network(LATENCY, MESSAGE, link * 1e9 / 8) for link in links]
            times = [simulate(ranks, 1_000_000, 0, call(verb, 8, 64), each) for each in networks]
            cells = " | ".join(f"{time * 1e3:.0f} ms" for time in times)
            print(f"| {ranks} | {verb} | {cells} |")


# Assumed for machines on one switch: seconds of a small message, and of a rank's time per message.
LATENCY, MESSAGE = 30e-6, 20e-6

if __name__ == "__main__":
    main()
