"""Rule 7: structured keys give right results without long probes.

Nothing is timed: a table with degenerate probes would need about 10^11 steps on these inputs and
exceed the test's time limit, while ours needs a fraction of a second.
"""

import numpy as np
import pytest
from oracle import same

import tensorhash

COUNT = 400_000
I = np.arange(COUNT, dtype=np.int64)  # noqa: E741


def cube(side):
    axis = np.arange(side, dtype=np.int64)
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)


NARROW = {
    "a sequence": I,
    "descending": -I,
    "shifted by 32": I << 32,
    "shifted by 44": I << 44,
    "multiples of 2^20": I * 2**20,
    "multiples of 101": I * 101,
    "float bits": I.astype(np.float64).view(np.int64),
    "packed voxels": (cube(73) @ np.array([1 << 42, 1 << 21, 1])).astype(np.int64),
    "reversed bits": np.array([int(f"{i:032b}"[::-1], 2) for i in range(COUNT)], dtype=np.int64),
    "high and low": (I % 632) << 50 | (I // 632),
}
WIDE = {
    "a cube": cube(73).astype(np.int32),
    "one octant, negative": (-1 - cube(73)).astype(np.int32),
    "multiples of 1024": (cube(73) * 1024).astype(np.int32),
    "shifted by 16": (cube(73) << 16).astype(np.int32),
    "a line": np.stack([I, 2 * I, 4 * I], axis=1).astype(np.int32),
    "integer floats": cube(73).astype(np.float32),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", NARROW)
def test_rule_07_structured_narrow_keys_are_ordinary(shape):
    use(NARROW[shape][:, None], "int64")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", WIDE)
def test_rule_07_structured_wide_keys_are_ordinary(shape):
    use(WIDE[shape], WIDE[shape].dtype)


def use(keys, dtype):
    keys = np.unique(keys, axis=0) if len(keys) < 1000 else keys
    table = tensorhash.HashSet(0, dtype, keys.shape[1:])
    expected = np.arange(len(keys), dtype=np.int32)
    indices, mask = table.insert(keys)
    same(indices, expected)
    assert mask.all()
    same(table.find(keys[::-1])[0], expected[::-1])
    assert not table.contains(keys + keys.dtype.type(1 << 22)).all()
    assert table.erase(keys[::2]).all()
    same(table.contains(keys), expected % 2 == 1)
