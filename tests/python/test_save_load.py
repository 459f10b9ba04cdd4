"""Files: .thash and .npz restore a table; names, suffixes and Open3D's arrays."""

import pathlib

import numpy as np
import pytest
from oracle import KEY_DTYPES, next_indices, same, snapshot

import tensorhash
import tensorhash.core as o3c

SUFFIXES = (".thash", ".npz")


def churned():
    table = tensorhash.HashMap(
        8,
        "int32",
        (3,),
        value_dtypes=("float16", "uint8", "int64"),
        value_element_shapes=((), (3,), (2, 2)),
    )
    rng = np.random.default_rng(0)
    for _ in range(4):
        keys = rng.integers(-4, 4, (200, 3)).astype(np.int32)
        half = rng.standard_normal(200).astype(np.float16)
        colors = rng.integers(0, 255, (200, 3)).astype(np.uint8)
        table.insert(keys, (half, colors, rng.integers(-9, 9, (200, 2, 2))))
        table.erase(rng.permutation(keys)[:120])
    return table


def same_table(got, expected):
    same(got.active_buf_indices(), expected.active_buf_indices())
    same(got.keys(), expected.keys())
    for one, other in zip(got.items()[1], expected.items()[1], strict=True):
        same(one, other)
    got.validate()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_entries_come_back_at_their_indices(tmp_path, suffix):
    table = churned()
    before = snapshot(table)
    table.save(tmp_path / f"t{suffix}")
    assert snapshot(table) == before
    loaded = tensorhash.HashMap.load(tmp_path / f"t{suffix}")
    same_table(loaded, table)
    assert loaded.capacity() >= table.size()


def test_the_native_file_restores_capacity_and_free_stack_exactly(tmp_path):
    table = churned()
    table.save(tmp_path / "t.thash")
    loaded = tensorhash.HashMap.load(tmp_path / "t.thash")
    assert loaded.capacity() == table.capacity()
    assert next_indices(loaded, 300) == next_indices(table, 300)


def test_a_loaded_file_saves_to_the_same_bytes(tmp_path):
    churned().save(tmp_path / "a.thash")
    tensorhash.HashMap.load(tmp_path / "a.thash").save(tmp_path / "b.thash")
    assert (tmp_path / "a.thash").read_bytes() == (tmp_path / "b.thash").read_bytes()
    churned().save(tmp_path / "c.thash")
    assert (tmp_path / "a.thash").read_bytes() == (tmp_path / "c.thash").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_every_key_dtype_and_value_dtype_comes_back(tmp_path, suffix, dtype):
    keys = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    table = tensorhash.HashMap.from_items(keys, keys[:, ::-1])
    table.save(tmp_path / f"t{suffix}")
    loaded = tensorhash.HashMap.load(tmp_path / f"t{suffix}")
    same(loaded.keys(), keys)
    same(loaded.items()[1], np.ascontiguousarray(keys[:, ::-1]))


def test_float_keys_keep_their_bits(tmp_path):
    keys = np.array([-0.0, np.nan, -np.inf, 5e-324])
    for suffix in SUFFIXES:
        table = tensorhash.HashSet(0, "float64", ())
        table.insert(keys)
        table.save(tmp_path / f"t{suffix}")
        loaded = tensorhash.HashSet.load(tmp_path / f"t{suffix}")
        assert loaded.keys().tobytes() == keys.tobytes()
        assert loaded.contains(np.array([0.0, -np.nan])).all()


def test_bfloat16_saves_natively_and_is_refused_as_npz(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    table = tensorhash.HashMap(0, "int64", (), "bfloat16", ())
    table.insert([1, 2], [1.5, 2.5])
    table.save(tmp_path / "t.thash")
    loaded = tensorhash.HashMap.load(tmp_path / "t.thash")
    assert loaded.get([2]).dtype == ml_dtypes.bfloat16
    assert float(loaded.get([2])[0]) == 2.5
    with pytest.raises((TypeError, ValueError), match=r"bfloat16.*thash"):
        table.save(tmp_path / "t.npz")
    assert not (tmp_path / "t.npz").exists()


def test_a_name_without_a_suffix_gets_the_suffix_of_the_namespace(tmp_path):
    tensorhash.HashMap.from_items([1], [2]).save(tmp_path / "plain")
    assert [path.name for path in tmp_path.iterdir()] == ["plain.thash"]
    same(tensorhash.HashMap.load(tmp_path / "plain").keys(), np.array([1]))
    same(tensorhash.HashMap.load(tmp_path / "plain.thash").keys(), np.array([1]))
    core = o3c.HashMap(1, o3c.int64, (1,), o3c.int64, (1,))
    core.insert([[3]], [[4]])
    core.save(str(tmp_path / "open"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["open.npz", "plain.thash"]
    same(o3c.HashMap.load(str(tmp_path / "open.npz")).keys(), np.array([[3]]))
    same(o3c.HashMap.load(str(tmp_path / "open")).keys(), np.array([[3]]))


def test_a_dot_in_the_name_is_not_a_suffix_of_ours(tmp_path):
    tensorhash.HashMap.from_items([1], [2]).save(tmp_path / "v1.2")
    assert (tmp_path / "v1.2.thash").exists()
    o3c.HashSet(1, o3c.int64, ()).save(tmp_path / "v1.2")
    assert (tmp_path / "v1.2.npz").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_either_namespace_reads_the_files_of_the_other(tmp_path, suffix):
    table = churned()
    table.save(tmp_path / f"a{suffix}")
    core = o3c.HashMap.load(tmp_path / f"a{suffix}")
    assert isinstance(core.keys(), o3c.Tensor)
    same_table(core, table)
    core.save(tmp_path / f"b{suffix}")
    same_table(tensorhash.HashMap.load(tmp_path / f"b{suffix}"), table)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_str_pathlib_and_bytes_are_paths_and_others_are_not(tmp_path, suffix):
    table = tensorhash.HashMap.from_items([1], [2])
    for name in (str(tmp_path / "a"), tmp_path / "bé", bytes(tmp_path / "c")):
        full = (
            name + suffix.encode() if isinstance(name, bytes) else pathlib.Path(f"{name}{suffix}")
        )
        table.save(file_name=full)
        assert tensorhash.HashMap.load(file_name=full).size() == 1
    for bad in (None, 5, ["x"]):
        with pytest.raises(TypeError, match="file_name"):
            table.save(bad)
        with pytest.raises(TypeError, match="file_name"):
            tensorhash.HashMap.load(bad)


@pytest.mark.parametrize("suffix", ["", *SUFFIXES])
def test_a_name_with_a_null_byte_is_refused_and_nothing_is_written(tmp_path, suffix):
    with pytest.raises(ValueError, match="file_name|null"):
        churned().save(f"{tmp_path}/a\0b{suffix}")
    assert list(tmp_path.iterdir()) == []
    churned().save(tmp_path / "a.thash")
    (tmp_path / "a.thash").rename(tmp_path / "a")
    with pytest.raises(ValueError, match="file_name|null"):
        tensorhash.HashMap.load(f"{tmp_path}/a\0b{suffix}")


@pytest.mark.parametrize("suffix", ["", *SUFFIXES])
def test_a_missing_file_or_folder_is_a_file_not_found_error(tmp_path, suffix):
    with pytest.raises(FileNotFoundError, match="nothing"):
        tensorhash.HashMap.load(tmp_path / f"nothing{suffix}")
    with pytest.raises(FileNotFoundError):
        churned().save(tmp_path / "no" / f"folder{suffix}")
    with pytest.raises(OSError):
        tensorhash.HashMap.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_saving_leaves_one_file_and_keeps_the_old_one_when_it_fails(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    for size in (1, 1000, 3):
        tensorhash.HashMap.from_items(np.arange(size), np.arange(size)).save(path)
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
        assert tensorhash.HashMap.load(path).size() == size


# Open3D's files.


def test_the_arrays_of_an_npz_are_open3ds_and_buf_index(tmp_path):
    table = churned()
    table.save(tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as file:
        names = {"key", "n_values", "value_000", "value_001", "value_002", "buf_index"}
        assert set(file.files) == names
        same(file["n_values"], np.array([3]))
        same(file["key"], table.keys())
        same(file["buf_index"], table.active_buf_indices())
        for column, values in enumerate(table.items()[1]):
            same(file[f"value_{column:03d}"], values)


def test_a_file_of_open3d_loads_as_rows_0_to_n(tmp_path):
    keys = np.array([[3, -1], [0, 0], [7, 7]], dtype=np.int32)
    np.savez(
        tmp_path / "o3d.npz",
        key=keys,
        n_values=np.array([2]),
        value_000=np.float32([[1], [2], [3]]),
        value_001=np.uint8([[1, 2, 3]] * 3),
    )
    for module in (tensorhash, o3c):
        table = module.HashMap.load(tmp_path / "o3d.npz")
        same(table.active_buf_indices(), np.arange(3, dtype=np.int32))
        same(table.keys(), keys)
        same(table.items()[1][1], np.uint8([[1, 2, 3]] * 3))
        same(table.insert(keys[:1] + 50, ([[0]], [[0, 0, 0]]))[0], np.int32([3]))
        table.validate()


def test_a_set_of_open3d_an_empty_map_and_one_dimensional_keys_load(tmp_path):
    np.savez(tmp_path / "set.npz", key=np.arange(4)[:, None], n_values=np.array([0]))
    same(tensorhash.HashSet.load(tmp_path / "set.npz").keys(), np.arange(4)[:, None])
    np.savez(
        tmp_path / "empty.npz",
        key=np.zeros((0, 3), np.int32),
        n_values=np.array([1]),
        value_000=np.zeros((0, 1), np.float32),
    )
    assert tensorhash.HashMap.load(tmp_path / "empty.npz").key_tensor().shape[1:] == (3,)
    np.savez(tmp_path / "flat.npz", key=np.arange(4), n_values=np.array([0]))
    same(tensorhash.HashSet.load(tmp_path / "flat.npz").keys(), np.arange(4))


def test_compressed_fortran_and_big_endian_arrays_load(tmp_path):
    keys = np.asfortranarray(np.arange(12).reshape(4, 3)).astype(">i4")
    np.savez_compressed(
        tmp_path / "t.npz", key=keys, n_values=np.int64([1]), value_000=np.arange(4.0)
    )
    table = tensorhash.HashMap.load(tmp_path / "t.npz")
    same(table.keys(), np.arange(12, dtype=np.int32).reshape(4, 3))
    same(table.items()[1], np.arange(4.0))


def test_without_buf_index_duplicate_keys_keep_the_first_row(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        key=np.array([5, 6, 5]),
        n_values=np.array([1]),
        value_000=np.array([1, 2, 3]),
    )
    table = tensorhash.HashMap.load(tmp_path / "t.npz")
    same(table.get(np.array([5, 6])), np.array([1, 2]))


def test_with_buf_index_rows_get_those_indices(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        key=np.array([50, 60]),
        n_values=np.array([0]),
        buf_index=np.int32([7, 2]),
    )
    table = tensorhash.HashSet.load(tmp_path / "t.npz")
    same(table.find(np.array([50, 60]))[0], np.int32([7, 2]))
    same(table.active_buf_indices(), np.int32([2, 7]))
    assert table.capacity() >= 8
    table.validate()
