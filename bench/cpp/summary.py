"""Makes a table of the output of tensorhash-bench: medians, and their ratios to ours.

usage: build/bench/tensorhash-bench ... | python3 bench/cpp/summary.py
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict

LIMITS = ("gather", "gather2", "scatter")


def spread(seconds: list[float]) -> float:
    """Half the interquartile range divided by the median."""
    if len(seconds) < 2:
        return 0.0
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(seconds)


def main() -> None:
    groups: dict[tuple, dict[str, list[float]]] = defaultdict(dict)
    for line in sys.stdin:
        run = json.loads(line)
        key = (run["key"], run["rows"], run["op"], run["threads"])
        groups[key][run["contender"]] = run["seconds"]
    heads = ("key", "rows", "operation", "threads", "contender", "ms", "spread", "M rows/s", "ours")
    print("{:8} {:>9} {:17} {:>7} {:10} {:>9} {:>7} {:>9}  {}".format(*heads))
    for (key, rows, operation, threads), contenders in groups.items():
        ours = statistics.median(contenders["tensorhash"]) if "tensorhash" in contenders else None
        for contender, seconds in contenders.items():
            middle = statistics.median(seconds)
            stands = ""
            if ours is not None and contender != "tensorhash":
                ratio = middle / ours
                stands = f"{ratio:.2f} of it" if contender in LIMITS else f"{ratio:.1f}x as fast"
            print(
                f"{key:8} {rows:>9} {operation:17} {threads:>7} {contender:10} {middle * 1e3:9.3f} "
                f"{spread(seconds):7.1%} {rows / middle / 1e6:9.1f}  {stands}"
            )


if __name__ == "__main__":
    main()
