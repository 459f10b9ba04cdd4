"""The contract in plain Python, row by row: a dict, a free stack and a counter.

Every table must give exactly what `Oracle` gives.
"""

import os

import numpy as np
import pytest

from tensorhash import _core

KEY_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)


def on_host(view):
    """A view as a NumPy array: a copy if it is on a device."""
    return np.asarray(view.cpu() if isinstance(view, _core.Tensor) else view)


DEVICE = os.environ.get("TENSORHASH_TEST_DEVICE", "cpu:0")
ON_CPU = DEVICE.startswith("cpu")
cpu_only = pytest.mark.skipif(not ON_CPU, reason="measures the CPU's memory or time")


def once_on_a_device(name, counts):
    """Parametrizes a test by thread counts, which mean nothing on a device."""
    return pytest.mark.parametrize(name, counts if ON_CPU else counts[:1])


needs_numpy_views = pytest.mark.skipif(not ON_CPU, reason="NumPy has no views on a device")


def canonical(key):
    """Equal keys have equal results: the bits, but -0.0 is 0.0 and all NaNs are the same."""
    key = np.asarray(key).reshape(-1)
    if key.dtype.kind == "f":
        key = np.where(np.isnan(key), key.dtype.type("nan"), key + key.dtype.type(0))
    return key.tobytes()


class Oracle:
    """One value column, or none if no values are given."""

    def __init__(self):
        self.index = {}  # canonical key -> buffer index
        self.keys = {}  # buffer index -> the key as first inserted
        self.values = {}  # buffer index -> value
        self.free = []
        self.fresh = 0

    def _place(self, key):
        name = canonical(key)
        if name in self.index:
            return self.index[name], False
        if self.free:
            place = self.free.pop()
        else:
            place = self.fresh
            self.fresh += 1
        self.index[name] = place
        self.keys[place] = np.array(key)
        return place, True

    def _batch(self, keys, on_row):
        indices, mask = [], []
        for row, key in enumerate(keys):
            place, new = self._place(key)
            on_row(place, row, new)
            indices.append(place)
            mask.append(new)
        return np.array(indices, dtype=np.int32), np.array(mask, dtype=bool)

    def insert(self, keys, values):
        def on_row(place, row, new):
            if new:
                self.values[place] = np.array(values[row])

        return self._batch(keys, on_row)

    def activate(self, keys, zero=0):
        return self.insert(keys, [zero] * len(keys))

    def insert_or_assign(self, keys, values):
        def on_row(place, row, new):
            self.values[place] = np.array(values[row])

        return self._batch(keys, on_row)

    def accumulate(self, keys, values, join):
        def on_row(place, row, new):
            value = np.array(values[row])
            self.values[place] = value if new else join(self.values[place], value)

        return self._batch(keys, on_row)

    def find(self, keys):
        indices = np.array([self.index.get(canonical(key), -1) for key in keys], dtype=np.int32)
        return indices, indices >= 0

    def erase(self, keys):
        mask = []
        for key in keys:
            place = self.index.pop(canonical(key), None)
            mask.append(place is not None)
            if place is not None:
                self.free.append(place)
                del self.keys[place], self.values[place]
        return np.array(mask, dtype=bool)

    def clear(self):
        self.__init__()

    def compact(self, capacity):
        moved = np.full(capacity, -1, dtype=np.int32)
        order = sorted(self.keys)
        moved[order] = np.arange(len(order))
        self.keys = {int(moved[i]): self.keys[i] for i in order}
        self.values = {int(moved[i]): self.values[i] for i in order}
        self.index = {name: int(moved[i]) for name, i in self.index.items()}
        self.free, self.fresh = [], len(order)
        return moved

    def live(self):
        return np.array(sorted(self.keys), dtype=np.int32)


def same(got, expected):
    """Equal in dtype, shape and every bit."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    assert got.tobytes() == expected.tobytes()


def same_pair(got, expected):
    """Equal (indices, mask)."""
    same(got[0], expected[0])
    same(got[1], expected[1])


def check(table, oracle):
    """The table holds what the oracle holds, at the same indices, and is valid."""
    live = oracle.live()
    assert len(table) == table.size() == len(live)
    same(table.active_buf_indices(), live)
    keys = np.asarray(table.keys())
    for row, place in enumerate(live.tolist()):
        same(keys[row], oracle.keys[place].astype(keys.dtype, copy=False).reshape(keys[row].shape))
    if hasattr(table, "items"):
        values = np.asarray(table.items()[1])
        for row, place in enumerate(live.tolist()):
            np.testing.assert_array_equal(values[row], oracle.values[place])
    table.validate()


def snapshot(table):
    """All that a caller can observe of a table, to compare before and after."""
    state = [table.size(), table.capacity(), table.memory_usage()]
    state.append(np.asarray(table.active_buf_indices()).tobytes())
    state.append(np.asarray(table.keys()).tobytes())
    state.append(on_host(table.key_tensor()).tobytes())
    if hasattr(table, "value_tensors"):
        state += [on_host(column).tobytes() for column in table.value_tensors()]
    return state


def next_indices(table, count=8):
    """The indices that new keys would get; does not change the table."""
    twin = table.clone()
    dtype = on_host(twin.key_tensor()).dtype
    shape = on_host(twin.key_tensor()).shape[1:]
    rng = np.random.default_rng(99)
    seen = []
    while len(seen) < count:
        key = rng.integers(-(2**62), 2**62, (1, *shape)).astype(dtype)
        adding = twin.activate if hasattr(twin, "activate") else twin.insert
        index, new = adding(key)
        if np.asarray(new)[0]:
            seen.append(int(np.asarray(index)[0]))
    return seen


def first_occurrence(keys):
    """(index of the first row of each distinct row, inverse, counts), in order of occurrence."""
    _, first, inverse, counts = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)], counts[order]


def refused(call, *parts):
    """The error that `call` raises; its text must contain all `parts`."""
    try:
        call()
    except Exception as error:
        for part in parts:
            assert part in str(error), f"{part!r} is not in {error!r}"
        return error
    raise AssertionError(f"nothing was raised, expected {parts}")
