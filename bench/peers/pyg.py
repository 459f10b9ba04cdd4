"""pyg-lib's CPUHashMap as a contender: it is made from its keys, and numbers them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.clock import Clock, Round
from harness.keys import CONSTRUCT, HIT, MISS
from peers import optional

NAME = "pyg-lib"


def maker() -> Any:
    """The class CPUHashMap, or None if pyg-lib is not installed."""
    if optional.module("pyg_lib") is None:
        return None
    import torch

    return torch.classes.pyg.CPUHashMap


def life(there: np.ndarray, shuffled: np.ndarray, missing: np.ndarray) -> Round:
    """A round with distinct int64 keys. `get` gives -1 for a missing key."""
    import torch

    make = maker()
    keys, asked, others = (
        torch.from_numpy(np.ascontiguousarray(batch.ravel()))
        for batch in (there, shuffled, missing)
    )

    def one_round(clock: Clock) -> None:
        with clock(CONSTRUCT):
            table = make(keys)
        table.get(asked)
        with clock(HIT):
            found = table.get(asked)
        with clock(MISS):
            table.get(others)
        if int((found < 0).sum()):
            raise AssertionError(f"{NAME} did not find every key")

    return one_round
