"""The gather limit as a contender: the memory limit of a lookup (bench/cpp/gather.h), for the table's own keys."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from harness import machine
from harness.clock import Clock, Round
from harness.keys import KeyKind
from harness.store import BUILD

NAME = "gather"
LIBRARY = BUILD / "libtensorhash-gather.so"


@cache
def library() -> ctypes.CDLL:
    if not LIBRARY.exists():
        raise FileNotFoundError(f"{LIBRARY} does not exist: tools/build-bench makes it")
    loaded = ctypes.CDLL(str(LIBRARY))
    loaded.th_gather_make.restype = ctypes.c_void_p
    return loaded


class Gather:
    """Memory as large as the index of a table with `rows` rows, and for wide keys as its key buffer.

    `index_bytes` replaces the index size for a table that is no HashMap."""

    def __init__(self, kind: KeyKind, rows: int, index_bytes: int = 0) -> None:
        from peers import ours

        self.kind, self.rows = kind, rows
        index = index_bytes or ours.Table(rows, kind).map.memory_usage()["index"]
        buffer = rows * kind.bytes if kind.bytes > 8 else 0
        sizes = (ctypes.c_int64(index), ctypes.c_int64(buffer))
        made = library().th_gather_make(*sizes, ctypes.c_int32(machine.threads()))
        if not made:
            raise MemoryError(f"the gather limit: no memory for {rows} keys")
        self.handle = ctypes.c_void_p(made)
        # Written here, because the first touch costs more than the gather.
        self.out, self.mask = np.ones(rows, np.int32), np.ones(rows, np.uint8)

    def of(self, keys: np.ndarray, lines: int) -> Callable[[], int]:
        """The gather of these keys, ready to be timed: all ctypes objects are made here."""
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (keys, self.out, self.mask)]
        width, count = ctypes.c_int32(self.kind.bytes), ctypes.c_int32(lines)
        given = (pointers[0], ctypes.c_int64(len(keys)), width, count, *pointers[1:])
        return partial(self._run, library().th_gather_run, *given)

    def _run(self, gather: Callable[..., int], *given: object) -> int:
        return gather(self.handle, *given)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            library().th_gather_destroy(self.handle)


def round_of(
    kind: KeyKind, batches: dict[str, np.ndarray], table_rows: int = 0, index_bytes: int = 0
) -> Round:
    """A round: gathers the keys of each operation once to warm the caches, then once timed.

    The table has room for the largest batch and for at least `table_rows`."""
    gather = Gather(kind, max(table_rows, *map(len, batches.values())), index_bytes)
    # Keep the arrays alive: the library has only their addresses.
    batches = {operation: np.ascontiguousarray(keys) for operation, keys in batches.items()}
    passes = {op: gather.of(keys, kind.lines(op)) for op, keys in batches.items()}

    def one_round(clock: Clock) -> None:
        for operation, run in passes.items():
            if run() != 0:
                raise ValueError(f"the gather limit refused {len(batches[operation])} keys")
            with clock(operation):
                run()

    return one_round
