"""`unique` beside those of torch, NumPy and polars, and beside a dict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import keys
from harness.case import Case, Sample, Scale, rows_text
from harness.clock import call, in_turn, samples
from harness.keys import KeyKind
from harness.report import beside

TITLE = "Distinct rows"
ABOUT = """
`tensorhash.unique` keeps the order of first occurrence, as polars' `unique(maintain_order=True)` and `dict.fromkeys`
do. `torch.unique` (rows: `dim=0`) and `np.unique` (rows: `axis=0`) sort. The conversion to arrays, tensors, frames
and lists is not timed.
"""
PATTERNS = ("random", "each twice", "each 8 times", "each 32 times", "Zipf")
SLOW_AT_MOST = 1_000_000  # for dict, NumPy and the rows of torch, which take seconds


def cases(scale: Scale) -> list[Case]:
    every = [(keys.INT64, 1_000_000, pattern) for pattern in PATTERNS]
    every += [(keys.INT32X3, 1_000_000, pattern) for pattern in ("random", "each 8 times", "Zipf")]
    every += [(keys.INT32X3, 5_000_000, "random"), (keys.INT64, 10_000_000, "random")]
    quick = [(keys.INT64, 1_000_000, p) for p in ("random", "each 8 times")]
    every = scale.pick(every, [*quick, (keys.INT32X3, 1_000_000, "random")])
    return [
        Case(
            f"unique/{kind.name}/{rows_text(rows)}/{pattern}",
            partial(measure, kind=kind, rows=scale.rows(rows)[0], pattern=pattern),
        )
        for kind, rows, pattern in every
    ]


def calls(batch: np.ndarray) -> dict[str, Callable[[], Any]]:
    import polars
    import torch

    import tensorhash
    from harness import machine
    from peers import python_dict

    torch.set_num_threads(machine.threads())
    wide = batch.ndim == 2
    tensor, listed = torch.from_numpy(batch), python_dict.batch(batch)
    frame = polars.DataFrame(batch) if wide else polars.Series(batch)
    return {
        "tensorhash": lambda: tensorhash.unique(batch),
        "torch": lambda: torch.unique(tensor, dim=0 if wide else None),
        "np.unique": lambda: np.unique(batch, axis=0 if wide else None),
        "polars": lambda: frame.unique(maintain_order=True),
        "dict": lambda: dict.fromkeys(listed),
    }


def measure(scale: Scale, kind: KeyKind, rows: int, pattern: str) -> list[Sample]:
    batch = keys.PATTERNS[pattern](rows, kind)
    batch = batch.ravel() if kind.shape == (1,) else batch
    contenders = calls(batch)
    if rows > SLOW_AT_MOST:
        del contenders["dict"], contenders["np.unique"]
        if kind.shape != (1,):
            del contenders["torch"]
    if len({len(work()) for work in contenders.values()}) != 1:
        raise AssertionError(f"contenders disagree on the number of distinct rows: {pattern}")
    rounds = {contender: call("unique", work) for contender, work in contenders.items()}
    times = in_turn(rounds, scale, scale.rounds(rows))
    return samples(times, key=kind.name, rows=rows, keys=pattern)


def tables(measured: list[Sample]) -> list[str]:
    return beside(measured)
