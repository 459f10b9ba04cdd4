"""Group-by, joins and numbers of strings beside those of pandas, polars and DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import machine
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import call, in_turn, samples
from harness.report import beside
from peers import optional

TITLE = "Group-by, joins and strings"
ABOUT = """
The sum of a float64 column by an int64 key, and the row numbers of joins. "dense" keys are 0 to groups - 1, "spread"
ones lie all over 64 bits, so that no contender can use them as positions, "sorted" are dense ones in order, and "zipf"
are spread keys with frequencies that fall with the power 1.1; with one group all four are the same. "five at once" are
sum, count, mean, min and max. pandas sums with `groupby(sort=False)`; polars with `group_by` and DuckDB with `group
by`, which keep no order. tensorhash keeps the order of first occurrence and adds in row order. Frames and DuckDB's
tables are made before the clock starts. The right side of a join has distinct keys, and half of the left rows have a
partner.

Then the numbers of strings in order of first occurrence: `StringIndex().insert` beside `pandas.factorize`, with the
same column on both sides. "pandas" and "Arrow" are pandas columns of dtype `str` and `string[pyarrow]`, "NumPy U" and
"NumPy S" arrays of fixed width, "object" is a NumPy array of `str` objects. A "polars" column goes to pandas as `str`.
`factorize` is that of tensorhash for int64 keys.
"""
ROWS = 5_000_000
SPREAD = np.int64(0x1E3779B97F4A7C15)
GROUPS = (10, 1_000, 100_000, 1_000_000, ROWS)
SUM, FIVE = "group-by sum", "five at once"
JOINS = ("inner", "left")
STRINGS = ("pandas", "Arrow", "polars", "NumPy U", "NumPy S", "object")


def cases(scale: Scale) -> list[Case]:
    rows = scale.rows(ROWS)[0]
    every = [(1, "spread"), *((groups, keys) for groups in GROUPS for keys in KEYS)]
    quick = [(groups, "spread") for groups in (1_000, 1_000_000)]
    sums = [
        Case(
            f"data/group_by/{rows_text(groups)}/{keys}",
            partial(measure_groups, rows=rows, groups=groups, keys=keys, operation=SUM),
        )
        for groups, keys in scale.pick(every, quick)
    ]
    five = [
        Case(
            f"data/five/{rows_text(groups)}",
            partial(measure_groups, rows=rows, groups=groups, keys="spread", operation=FIVE),
        )
        for groups in scale.pick((1_000, 1_000_000), (1_000,))
    ]
    joins = [Case(f"data/{how}_join", partial(measure_join, rows=rows, how=how)) for how in JOINS]
    strings = [
        Case(f"data/strings/{form}", partial(measure_strings, rows=rows, form=form))
        for form in scale.pick(STRINGS, STRINGS[:2])
    ]
    factorize = Case("data/factorize", partial(measure_factorize, rows=rows))
    return [*sums, *five, *joins, factorize, *strings]


def _spread(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return numbers.astype(np.int64) * SPREAD


def _dense(rows: int, groups: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.permutation(rows) if groups >= rows else rng.integers(0, groups, rows)


def _zipf(rows: int, groups: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    weights = np.cumsum(np.arange(1, groups + 1) ** -1.1)
    ranks = np.searchsorted(weights, rng.random(rows) * weights[-1])
    return rng.permutation(groups)[ranks]


KEYS: dict[str, Callable[[int, int], np.ndarray]] = {
    "dense": _dense,
    "spread": lambda rows, groups: _spread(_dense(rows, groups)),
    "sorted": lambda rows, groups: np.sort(_dense(rows, groups)),
    "zipf": lambda rows, groups: _spread(_zipf(rows, groups)),
}


def connect(**frames: Any) -> Any:
    """DuckDB with these frames as its own tables, or None if it is not installed."""
    duckdb = optional.module("duckdb")
    if duckdb is None:
        return None
    session = duckdb.connect(config={"threads": machine.threads()})
    for name, frame in frames.items():
        session.register("frame", frame)
        session.execute(f"create table {name} as select * from frame")
        session.unregister("frame")
    return session


def query(session: Any, text: str) -> Callable[[], Any]:
    """The first column of the answer, as an array; all columns are made."""
    return lambda: next(iter(session.execute(text).fetchnumpy().values()))


def sum_calls(keys: np.ndarray, values: np.ndarray) -> dict[str, Callable[[], Any]]:
    import polars

    import tensorhash

    calls: dict[str, Callable[[], Any]] = {
        "tensorhash": lambda: tensorhash.group_by(keys).agg(sum=values)["sum"]
    }
    table = polars.DataFrame({"k": keys, "v": values})
    if pandas := optional.module("pandas"):
        frame = pandas.DataFrame({"k": keys, "v": values})
        calls["pandas"] = lambda: frame.groupby("k", sort=False).v.sum()
    calls["polars"] = lambda: table.group_by("k").agg(polars.col("v").sum())
    if session := connect(t=table):
        calls["DuckDB"] = query(session, "select k, sum(v) from t group by k")
    return calls


def five_calls(keys: np.ndarray, values: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Sum, count, mean, min and max in one call."""
    import polars

    import tensorhash

    names = ("sum", "count", "mean", "min", "max")
    wanted = {name: (values, name) for name in names}
    calls: dict[str, Callable[[], Any]] = {
        "tensorhash": lambda: tensorhash.group_by(keys).agg(**wanted)["sum"]
    }
    table = polars.DataFrame({"k": keys, "v": values})
    if pandas := optional.module("pandas"):
        frame = pandas.DataFrame({"k": keys, "v": values})
        calls["pandas"] = lambda: frame.groupby("k", sort=False).v.agg(list(names))
    columns = [getattr(polars.col("v"), name)().alias(name) for name in names]
    calls["polars"] = lambda: table.group_by("k").agg(columns)
    if session := connect(t=table):
        texts = "sum(v), count(v), avg(v), min(v), max(v)"
        calls["DuckDB"] = query(session, f"select k, {texts} from t group by k")
    return calls


def measure_groups(scale: Scale, rows: int, groups: int, keys: str, operation: str) -> list[Sample]:
    values = np.random.default_rng(1).random(rows)
    made = {SUM: sum_calls, FIVE: five_calls}[operation]
    contenders = made(KEYS[keys](rows, min(groups, rows)), values)
    if len({len(work()) for work in contenders.values()}) != 1:
        raise AssertionError(f"contenders disagree on the number of groups: {groups} {keys}")
    rounds = {name: call(operation, work) for name, work in contenders.items()}
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, rows=rows, groups=groups, keys=keys)


def join_calls(left: np.ndarray, right: np.ndarray, how: Any) -> dict[str, Callable[[], Any]]:
    import polars

    import tensorhash

    calls: dict[str, Callable[[], Any]] = {
        "tensorhash": lambda: tensorhash.join(left, right, how).left
    }
    sides = {"l": left, "r": right}
    tables = {n: polars.DataFrame({"k": k, n: np.arange(len(k))}) for n, k in sides.items()}
    if pandas := optional.module("pandas"):
        frames = {n: pandas.DataFrame({"k": k, n: np.arange(len(k))}) for n, k in sides.items()}
        calls["pandas"] = lambda: frames["l"].merge(frames["r"], on="k", how=how)
    calls["polars"] = lambda: tables["l"].join(tables["r"], on="k", how=how)
    if session := connect(left_side=tables["l"], right_side=tables["r"]):
        text = f"select l, r from left_side {how} join right_side using (k)"
        calls["DuckDB"] = query(session, text)
    return calls


def measure_join(scale: Scale, rows: int, how: str) -> list[Sample]:
    rng = np.random.default_rng(1)
    right = max(rows // 5, 1)
    keys = _spread(rng.integers(0, 2 * right, rows)), _spread(rng.permutation(right))
    contenders = join_calls(*keys, how)
    if len({len(work()) for work in contenders.values()}) != 1:
        raise AssertionError(f"contenders disagree on the number of pairs: {how}")
    rounds = {name: call(f"{how} join", work) for name, work in contenders.items()}
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, rows=rows, groups=right, keys="spread")


def compare(work: dict[str, Callable[[], Any]], operation: str, scale: Scale, rows: int) -> Any:
    """Times of contenders that all return codes. They must agree on them."""
    codes = [np.asarray(numbered()) for numbered in work.values()]
    if not all(np.array_equal(codes[0], other) for other in codes[1:]):
        raise AssertionError(f"contenders disagree on the codes: {operation}")
    rounds = {name: call(operation, numbered) for name, numbered in work.items()}
    return in_turn(rounds, scale, scale.rounds(rows))


def measure_factorize(scale: Scale, rows: int) -> list[Sample]:
    import tensorhash

    pandas = optional.module("pandas")
    if pandas is None:
        return []

    groups = max(rows // 50, 1)
    keys = _spread(np.random.default_rng(2).integers(0, groups, rows))
    work = {
        "tensorhash": lambda: tensorhash.factorize(keys)[0],
        "pandas": lambda: pandas.factorize(keys)[0],
    }
    times = compare(work, "factorize", scale, rows)
    return samples(times, rows=rows, groups=groups, keys="spread")


def strings_of(form: str, rows: int, groups: int) -> tuple[Any, Any]:
    """A column of strings of 6 to 20 bytes, for tensorhash and for pandas."""
    import pandas

    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 15, groups)
    words = np.array([f"{i:06d}" + "x" * n for i, n in enumerate(lengths)], dtype=object)
    column = words[rng.integers(0, groups, rows)]
    if form.startswith("NumPy"):
        column = column.astype(form[-1])
    if form == "polars":
        import polars

        return polars.Series(column), pandas.Series(column, dtype="str")
    dtype = {"pandas": "str", "Arrow": "string[pyarrow]"}.get(form)
    column = pandas.Series(column, dtype=dtype) if dtype else column
    return column, column


def measure_strings(scale: Scale, rows: int, form: str) -> list[Sample]:
    import tensorhash

    pandas = optional.module("pandas")
    if pandas is None or (form == "Arrow" and optional.module("pyarrow") is None):
        return []

    groups = max(rows // 50, 1)
    own, theirs = strings_of(form, rows, groups)
    work = {
        "tensorhash": lambda: tensorhash.StringIndex().insert(own),
        "pandas": lambda: pandas.factorize(theirs)[0],
    }
    times = compare(work, f"strings ({form})", scale, rows)
    return samples(times, rows=rows, groups=groups, keys="strings")


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
