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
        groups[key][run["who"]] = run["seconds"]
    heads = ("key", "rows", "operation", "threads", "who", "ms", "spread", "M rows/s", "ours")
    print("{:8} {:>9} {:17} {:>7} {:10} {:>9} {:>7} {:>9}  {}".format(*heads))
    for (key, rows, operation, threads), whos in groups.items():
        ours = statistics.median(whos["tensorhash"]) if "tensorhash" in whos else None
        for who, seconds in whos.items():
            middle = statistics.median(seconds)
            stands = ""
            if ours is not None and who != "tensorhash":
                ratio = middle / ours
                stands = f"{ratio:.2f} of it" if who in LIMITS else f"{ratio:.1f}x as fast"
            print(
                f"{key:8} {rows:>9} {operation:17} {threads:>7} {who:10} {middle * 1e3:9.3f} "
                f"{spread(seconds):7.1%} {rows / middle / 1e6:9.1f}  {stands}"
            )


if __name__ == "__main__":
    main()
