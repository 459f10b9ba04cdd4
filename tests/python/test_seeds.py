"""Seeds of tables: random unless fixed, and never visible in a result."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tensorhash as th
from tensorhash.coords import CoordTable, PackedHashTable

COORDS = np.random.default_rng(1).integers(-1000, 1000, (500, 4)).astype(np.int32)
COORDS[:, 0] = np.abs(COORDS[:, 0]) % 4


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "TENSORHASH_SEED"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**kept, **environment}
    )


def slots(table: CoordTable | PackedHashTable) -> bytes:
    table.insert(COORDS)
    return np.ascontiguousarray(table.keys_tensor).tobytes()


@pytest.mark.skipif("TENSORHASH_SEED" in os.environ, reason="the environment fixes all seeds")
def test_each_table_draws_its_own_seed():
    assert len({slots(CoordTable()) for _ in range(5)}) == 5


def test_the_seed_determines_where_keys_lie():
    assert slots(CoordTable(seed=5)) == slots(CoordTable(seed=5))
    assert slots(CoordTable(seed=5)) != slots(CoordTable(seed=6))


def test_a_packed_table_has_the_published_hash():
    assert slots(PackedHashTable(1024)) == slots(PackedHashTable(1024))
    table = PackedHashTable.from_coords(np.array([[1, 2, 3, 4]], np.int32), capacity=64)
    key = int(table.keys_tensor[table.values_tensor == 0][0]) % 2**64
    mixed = key
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> shift) * multiplier % 2**64
    mixed ^= mixed >> 31
    assert table.values_tensor[mixed % 64] == 0


SLOTS = """
import numpy as np
from tensorhash.coords import CoordTable
coords = np.arange(400, dtype=np.int32).reshape(100, 4) % 90
for table in (CoordTable(), CoordTable(), CoordTable(seed=0xabc)):
    table.insert(coords)
    print(hash(np.ascontiguousarray(table.keys_tensor).tobytes()))
"""


@pytest.mark.parametrize("seed", ["2748", "0xabc", "0xABC"])
def test_the_environment_fixes_the_seeds_of_all_tables(seed):
    lines = run(SLOTS, TENSORHASH_SEED=seed, PYTHONHASHSEED="0").stdout.split()
    assert len(lines) == 3
    assert len(set(lines)) == 1


@pytest.mark.parametrize("seed", ["-1", "1.5", "abc", "18446744073709551616", "12 ", "0x"])
def test_a_bad_seed_in_the_environment_is_refused(seed):
    code = "import tensorhash as th; th.HashSet(0, 'int64', ())"
    ended = run(code, TENSORHASH_SEED=seed)
    assert ended.returncode != 0
    assert f'ValueError: TENSORHASH_SEED: expected an integer from 0 to 2^64 - 1, got "{seed}"' in (
        ended.stderr
    )


def test_an_empty_seed_in_the_environment_counts_as_unset():
    assert (
        run("import tensorhash as th; th.HashSet(0, 'int64', ())", TENSORHASH_SEED="").returncode
        == 0
    )


TABLES = [
    lambda seed: th.HashMap(0, "int64", (), "float32", (2,), seed=seed),
    lambda seed: th.HashSet(0, "int32", (3,), seed=seed),
    lambda seed: th.BoundedHashMap(100, "int64", (), "float32", (), seed=seed),
    lambda seed: th.ShardedHashMap(
        0, "int64", (), "float32", (), devices=["cpu:0", "cpu:1"], seed=seed
    ),
    lambda seed: th.ShardedBoundedHashMap(
        100, "int64", (), "float32", (), devices=["cpu:0", "cpu:1"], seed=seed
    ),
    lambda seed: CoordTable(seed=seed),
]


@pytest.mark.parametrize("make", TABLES)
def test_a_seed_out_of_range_is_refused(make):
    for bad in (-1, 2**64):
        with pytest.raises(
            ValueError, match=rf"seed: expected None or 0 to 2\*\*64 - 1, got {bad}"
        ):
            make(bad)
    with pytest.raises(TypeError, match="seed: expected an int, got str"):
        make("1")
    make(0)
    make(2**64 - 1)
    make(np.uint64(7))


def program(seed: int) -> list[bytes]:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 3000, 8000)
    values = rng.standard_normal((8000, 2)).astype(np.float32)
    out = []
    table = th.HashMap(0, "int64", (), "float32", (2,), seed=seed)
    out += table.accumulate(keys, values, "sum")
    out.append(table.erase(keys[::3]))
    out += table.insert(keys[::2], values[::2])
    out += [table.keys(), *table.items(), table.active_buf_indices(), table.find(keys)[0]]
    copy = table.clone()
    out += copy.insert(keys, values)
    bounded = th.BoundedHashMap(500, "int64", (), "float32", (2,), seed=seed)
    indices, added, evicted = bounded.insert(keys, values)
    out += [indices, added, evicted.keys, bounded.keys()]
    shards = th.ShardedHashMap(
        0, "int64", (), "float32", (2,), devices=["cpu:0", "cpu:1"], seed=seed
    )
    out += [*shards.insert(keys, values), shards.keys()]
    coords = CoordTable(seed=seed)
    coords.insert(COORDS)
    coords.expand_with_offsets(COORDS[:50], np.array([[0, 1, 0, 0], [0, 0, 5, 0]], np.int32))
    out += [coords.search(COORDS[::-1]), coords.unique_index, coords.vector_keys]
    return [np.asarray(one).tobytes() for one in out]


def test_no_result_depends_on_the_seed():
    first = program(0)
    for seed in (1, 99, 2**64 - 1):
        assert program(seed) == first


SCRATCH = """
import hashlib
import numpy as np
import tensorhash as th
from tensorhash import coords as thc

rng = np.random.default_rng(5)
digest = hashlib.sha256()
def note(*arrays):
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
keys = rng.integers(0, 20000, 100000)
note(*th.unique(keys, return_index=True, return_inverse=True, return_counts=True))
points = rng.standard_normal((5000, 3)) * 4
rows = np.unique(rng.integers(-20, 20, (3000, 4)).astype(np.int32) % [3, 99, 99, 99], axis=0)
rows = rows.astype(np.int32)
for strategy in ("flat", "hierarchical", "merge", "blocks"):
    made = thc.generate_kernel_map(rows, rows, 1, 3, strategy=strategy)
    note(made.in_maps, made.out_maps, made.offsets)
note(*[np.asarray(part) for part in thc.radius_search(points, points[:100], 0.7)])
print(digest.hexdigest())
"""


def test_no_result_of_a_scratch_index_depends_on_the_seed():
    answers = [run(SCRATCH, TENSORHASH_SEED=seed) for seed in ("0", "12345")] + [run(SCRATCH)]
    for answer in answers:
        assert answer.returncode == 0, answer.stderr
    assert len({answer.stdout for answer in answers}) == 1


def test_files_hold_no_seed(tmp_path):
    keys = np.arange(1000)
    images = []
    for seed in (1, 2):
        table = th.HashSet(0, "int64", (), seed=seed)
        table.insert(keys)
        table.save(tmp_path / f"{seed}.thash")
        images.append((tmp_path / f"{seed}.thash").read_bytes())
    assert images[0] == images[1]


FLOOD = """
import numpy as np
import tensorhash as th
from tensorhash import coords as thc

M1, M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
def before_splitmix(mixed):
    "The words that splitmix64's finalizer turns into these."
    x = mixed
    for (a, b), m in (((31, 62), M2), ((27, 54), M1)):
        x = (x ^ x >> np.uint64(a) ^ x >> np.uint64(b)) * np.uint64(pow(m, -1, 2**64))
    return x ^ x >> np.uint64(30) ^ x >> np.uint64(60)

numbers = np.arange(600_000, dtype=np.uint64)
one_bucket = before_splitmix(numbers << np.uint64(30) | np.uint64(3))
keys = one_bucket - np.uint64(0x9E3779B97F4A7C15)
assert len(th.unique(keys)) == len(keys)
assert th.HashSet(0, "uint64", ()).insert(keys)[1].all()
packed = one_bucket[one_bucket >> np.uint64(63) == 1].view(np.int64)
coords = np.stack(
    [packed >> 54 & 511] + [(packed << left) >> 46 for left in (10, 28, 46)], axis=1
).astype(np.int32)
assert len(thc.CoordTable.from_coords(coords).unique_index) == len(coords)
assert len(thc.expand_coords(coords, 1)[0]) == len(coords)
assert thc.generate_kernel_map(coords, coords, 1, 1, strategy="flat").in_maps.size == len(coords)
"""


def test_keys_that_share_a_bucket_of_the_published_hash_do_not_flood_scratch_indices():
    # Nothing is timed: if all keys shared one bucket, the calls would take many minutes.
    ended = subprocess.run(
        [sys.executable, "-c", FLOOD], capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
