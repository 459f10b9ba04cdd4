"""Group-by and joins beside those of pandas and polars."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness.case import Case, Sample, Scale, rows_text
from harness.clock import call, in_turn, samples
from harness.report import beside

TITLE = "Group-by and joins"
ABOUT = """
The sum of a float64 column by an int64 key, and the row numbers of an inner join. Keys are spread over 64 bits, so
that no contender can use them as positions. pandas sums with `groupby(sort=False)`; polars with `group_by`, which
keeps no order. tensorhash keeps the order of first occurrence and adds in row order. Frames are made before the
clock starts. The right side of a join has distinct keys, and half of the left rows have a partner.
"""
ROWS = 5_000_000
SPREAD = np.int64(0x1E3779B97F4A7C15)


def cases(scale: Scale) -> list[Case]:
    groups = scale.pick((1, 1_000, 100_000, 1_000_000, ROWS), (1_000, 1_000_000))
    rows = scale.rows(ROWS)[0]
    found = [
        Case(f"data/group_by/{rows_text(one)}", partial(measure_groups, rows=rows, groups=one))
        for one in groups
    ]
    return [*found, Case("data/join", partial(measure_join, rows=rows))]


def _spread(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return numbers.astype(np.int64) * SPREAD


def group_calls(keys: np.ndarray, values: np.ndarray) -> dict[str, Callable[[], Any]]:
    import pandas
    import polars

    import tensorhash

    frame = pandas.DataFrame({"k": keys, "v": values})
    table = polars.DataFrame({"k": keys, "v": values})
    return {
        "tensorhash": lambda: tensorhash.group_by(keys).agg(sum=values)["sum"],
        "pandas": lambda: frame.groupby("k", sort=False).v.sum(),
        "polars": lambda: table.group_by("k").agg(polars.col("v").sum()),
    }


def measure_groups(scale: Scale, rows: int, groups: int) -> list[Sample]:
    rng = np.random.default_rng(0)
    numbers = rng.permutation(rows) if groups >= rows else rng.integers(0, groups, rows)
    contenders = group_calls(_spread(numbers), rng.random(rows))
    if len({len(work()) for work in contenders.values()}) != 1:
        raise AssertionError(f"contenders disagree on the number of groups: {groups}")
    rounds = {who: call("group-by sum", work) for who, work in contenders.items()}
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, rows=rows, groups=groups)


def join_calls(left: np.ndarray, right: np.ndarray) -> dict[str, Callable[[], Any]]:
    import pandas
    import polars

    import tensorhash

    sides = {"l": left, "r": right}
    frames = {n: pandas.DataFrame({"k": k, n: np.arange(len(k))}) for n, k in sides.items()}
    tables = {n: polars.DataFrame({"k": k, n: np.arange(len(k))}) for n, k in sides.items()}
    return {
        "tensorhash": lambda: tensorhash.join(left, right).left,
        "pandas": lambda: frames["l"].merge(frames["r"], on="k"),
        "polars": lambda: tables["l"].join(tables["r"], on="k"),
    }


def measure_join(scale: Scale, rows: int) -> list[Sample]:
    rng = np.random.default_rng(1)
    right = max(rows // 5, 1)
    contenders = join_calls(
        _spread(rng.integers(0, 2 * right, rows)), _spread(rng.permutation(right))
    )
    if len({len(work()) for work in contenders.values()}) != 1:
        raise AssertionError("contenders disagree on the number of pairs")
    rounds = {who: call("inner join", work) for who, work in contenders.items()}
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, rows=rows, groups=right)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
