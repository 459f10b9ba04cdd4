"""HashMap and HashSet of Open3D's wheel and ours, side by side."""

import numpy as np
import pytest

pytest.importorskip("open3d")

import open3d.core
import tsdf_loop
from agreement import agree

import tensorhash.core

KEYS = [
    (dtype, shape) for dtype in ("int16", "int32", "int64") for shape in ((), (1,), (3,), (2, 3))
]


def rows_by_key(table, o3c, columns):
    """Live keys in ascending order with their values."""
    places = table.active_buf_indices().to(o3c.int64)
    keys = table.key_tensor()[places].numpy().reshape(table.size(), -1)
    order = np.lexsort(keys.T[::-1]) if len(keys) else slice(0)
    return [keys[order], *(table.value_tensor(c)[places].numpy()[order] for c in range(columns))]


def history(rng, dtype, shape):
    """Random batches of at most 60 rows: Open3D inserts up to 64 rows in order."""
    steps = []
    for _ in range(30):
        verb = rng.choice(["insert", "find", "erase", "activate", "reserve", "clone"])
        # Few distinct keys, so that rows repeat within and between batches.
        keys = rng.integers(-2, 3, (int(rng.integers(1, 60)), *shape)).astype(dtype)
        values = rng.normal(size=(len(keys), 2)).astype(np.float32)
        counts = rng.integers(0, 255, (len(keys), 3)).astype(np.uint8)
        steps.append((str(verb), keys, values, counts))
    return steps


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype,shape", KEYS)
def test_random_histories_of_a_map(dtype, shape, seed):
    steps = history(np.random.default_rng(seed), dtype, shape)

    def play(o3c):
        table = o3c.HashMap(
            8,
            getattr(o3c, dtype),
            shape,
            (o3c.float32, o3c.uint8),
            ((2,), (3,)),
            o3c.Device("CPU:0"),
        )
        seen = []
        for verb, keys, values, counts in steps:
            if verb == "insert":
                mask = table.insert(o3c.Tensor(keys), [o3c.Tensor(values), o3c.Tensor(counts)])[1]
            elif verb == "activate":
                # Values of recycled entries differ on purpose, so write them at once.
                places, mask = table.activate(o3c.Tensor(keys))
                new = places[mask].to(o3c.int64)
                for column, rows in enumerate((values, counts)):
                    table.value_tensor(column)[new] = o3c.Tensor(rows[mask.numpy()])
            elif verb == "reserve":
                table.reserve(table.size() + 10)
                continue
            elif verb == "clone":
                table = table.clone() if table.size() else table
                continue
            else:
                found = getattr(table, verb)(o3c.Tensor(keys))
                mask = found if verb == "erase" else found[1]
            seen += [mask, *rows_by_key(table, o3c, 2), table.size()]
        return seen

    agree(play, note=f"{dtype} {shape} seed {seed}")


@pytest.mark.parametrize("seed", range(10))
def test_random_histories_of_a_set(seed):
    steps = history(np.random.default_rng(seed), "int64", (3,))

    def play(o3c):
        table = o3c.HashSet(8, o3c.int64, (3,), o3c.Device("CPU:0"))
        seen = []
        for verb, keys, _, _ in steps:
            if verb in ("insert", "find"):
                seen.append(getattr(table, verb)(o3c.Tensor(keys))[1])
            elif verb == "erase":
                seen.append(table.erase(o3c.Tensor(keys)))
            seen += [*rows_by_key(table, o3c, 0), table.size()]
        return seen

    agree(play, note=f"seed {seed}")


def test_numpy_arrays_and_lists_give_tensors():
    def play(o3c):
        table = o3c.HashMap(8, o3c.int64, (1,), o3c.int64, (1,), o3c.Device("CPU:0"))
        results = [*table.insert(np.array([[1], [2]]), np.array([[3], [4]]))]
        results += [*table.find([[1], [7]]), table.erase(np.array([[2]]))]
        return [type(result).__name__ for result in results] + results[1:4:2]

    agree(play)


@pytest.mark.parametrize("dtype", ["int16", "int64"])
def test_files_go_both_ways(tmp_path, dtype):
    keys = np.arange(-5, 45).astype(dtype).reshape(-1, 1)
    values = np.arange(100, dtype=np.float32).reshape(50, 2)
    for writer, reader in (
        (open3d.core, tensorhash.core),
        (tensorhash.core, open3d.core),
    ):
        name = str(tmp_path / f"{writer.__name__}.npz")
        table = writer.HashMap(50, getattr(writer, dtype), (1,), writer.float32, (2,))
        table.insert(writer.Tensor(keys), writer.Tensor(values))
        table.save(name)
        found = rows_by_key(reader.HashMap.load(name), reader, 1)
        np.testing.assert_array_equal(found[0], keys)
        np.testing.assert_array_equal(found[1], values)
        name = str(tmp_path / f"{writer.__name__}.npy")
        for array in (values, keys, np.array(3.5), np.zeros((0, 3)), values > 4):
            writer.Tensor(array).save(name)
            np.testing.assert_array_equal(reader.Tensor.load(name).numpy(), array)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tsdf_loop_gives_the_same_bits(dtype):
    agree(lambda o3c: list(tsdf_loop.run(o3c, dtype)), note=dtype)
