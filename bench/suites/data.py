"""Group-by, joins and numbers of strings beside those of pandas and polars."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness.case import Case, Sample, Scale, rows_text
from harness.clock import call, in_turn, samples
from harness.report import beside

TITLE = "Group-by, joins and strings"
ABOUT = """
The sum of a float64 column by an int64 key, and the row numbers of an inner join. Keys are spread over 64 bits, so
that no contender can use them as positions. pandas sums with `groupby(sort=False)`; polars with `group_by`, which
keeps no order. tensorhash keeps the order of first occurrence and adds in row order. Frames are made before the
clock starts. The right side of a join has distinct keys, and half of the left rows have a partner.

Then the numbers of strings in order of first occurrence: `StringIndex().insert` beside `pandas.factorize`, with the
same column on both sides. "pandas" and "Arrow" are pandas columns of dtype `str` and `string[pyarrow]`, "object" is a
NumPy array of `str` objects. `factorize` is that of tensorhash for int64 keys.
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
    strings = [
        Case(f"data/strings/{form}", partial(measure_strings, rows=rows, form=form))
        for form in ("pandas", "Arrow", "object")
    ]
    others = [
        Case("data/join", partial(measure_join, rows=rows)),
        Case("data/factorize", partial(measure_factorize, rows=rows)),
    ]
    return [*found, *others, *strings]


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


def compare(work: dict[str, Callable[[], Any]], operation: str, scale: Scale, rows: int) -> Any:
    """Times of contenders that all return codes. They must agree on them."""
    codes = [np.asarray(numbered()) for numbered in work.values()]
    if not all(np.array_equal(codes[0], other) for other in codes[1:]):
        raise AssertionError(f"contenders disagree on the codes: {operation}")
    rounds = {who: call(operation, numbered) for who, numbered in work.items()}
    return in_turn(rounds, scale, scale.rounds(rows))


def measure_factorize(scale: Scale, rows: int) -> list[Sample]:
    import pandas

    import tensorhash

    groups = max(rows // 50, 1)
    keys = _spread(np.random.default_rng(2).integers(0, groups, rows))
    work = {
        "tensorhash": lambda: tensorhash.factorize(keys)[0],
        "pandas": lambda: pandas.factorize(keys)[0],
    }
    return samples(compare(work, "factorize", scale, rows), rows=rows, groups=groups)


def strings_of(form: str, rows: int, groups: int) -> Any:
    """A column of strings of 6 to 20 bytes."""
    import pandas

    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 15, groups)
    words = np.array([f"{i:06d}" + "x" * n for i, n in enumerate(lengths)], dtype=object)
    column = words[rng.integers(0, groups, rows)]
    dtype = {"pandas": "str", "Arrow": "string[pyarrow]"}.get(form)
    return pandas.Series(column, dtype=dtype) if dtype else column


def measure_strings(scale: Scale, rows: int, form: str) -> list[Sample]:
    import pandas

    import tensorhash

    groups = max(rows // 50, 1)
    column = strings_of(form, rows, groups)
    work = {
        "tensorhash": lambda: tensorhash.StringIndex().insert(column),
        "pandas": lambda: pandas.factorize(column)[0],
    }
    times = compare(work, f"strings ({form})", scale, rows)
    return samples(times, rows=rows, groups=groups)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
