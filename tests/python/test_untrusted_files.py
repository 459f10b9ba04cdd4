"""Untrusted files: small files that claim much memory, and files with false statements."""

import os
import struct
import zipfile

import numpy as np
import pytest
from limited_memory import LIMITED
from oracle import same

import tensorhash
import tensorhash.core as o3c

LOADERS = (tensorhash.HashMap, tensorhash.HashSet, o3c.HashMap)


def load_limited(run_program, path, call="tensorhash.HashMap.load(sys.argv[1])"):
    return run_program(LIMITED + f"attempt(lambda: {call})", arguments=(path,)).strip()


def savez(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_a_small_npz_with_a_large_index_is_refused(run_program, tmp_path):
    path = savez(
        tmp_path / "t.npz",
        key=np.array([5]),
        n_values=np.array([0]),
        buf_index=np.int32([2**31 - 2]),
    )
    assert path.stat().st_size < 1000
    said = load_limited(run_program, path)
    assert said.startswith("refused") and "t.npz" in said and "max_bytes=" in said, said


def test_an_index_in_proportion_is_restored_and_max_bytes_allows_more(tmp_path):
    path = savez(
        tmp_path / "t.npz",
        key=np.array([5]),
        n_values=np.array([0]),
        buf_index=np.int32([5_000_000]),
    )
    with pytest.raises(ValueError, match="max_bytes=") as error:
        tensorhash.HashSet.load(path)
    needed = int(str(error.value).rpartition("max_bytes=")[2])
    table = tensorhash.HashSet.load(path, max_bytes=needed)
    same(table.active_buf_indices(), np.int32([5_000_000]))
    assert table.memory_usage()["total"] < needed * 1.02  # rounded up to whole pages
    with pytest.raises(ValueError, match="max_bytes="):
        tensorhash.HashSet.load(path, max_bytes=needed - 1)


def test_many_equal_short_keys_are_in_proportion(tmp_path):
    keys = np.zeros(12_000_000, np.uint8)
    path = savez(tmp_path / "t.npz", key=keys, n_values=np.array([0]))
    same(tensorhash.HashSet.load(path).keys(), keys[:1])


# Loads a file and prints the peak memory of the load in megabytes.
PEAK = """
import re, sys
import numpy as np
import tensorhash

def resident(name):
    return int(re.search(name + r":\\s*(\\d+) kB", open("/proc/self/status").read())[1]) / 1000

tensorhash.set_num_threads(1)
tensorhash.HashMap.from_items(np.arange(10), np.arange(10)).get([1])
before = resident("VmRSS")
table = tensorhash.HashSet.load(sys.argv[1], max_bytes=61_000_000)
assert table.keys().tolist() == [0]
print(resident("VmHWM") - before)
"""


def test_at_its_peak_a_load_holds_the_arrays_the_table_and_little_else(run_program, tmp_path):
    path = tmp_path / "b.npz"
    np.savez_compressed(path, key=np.zeros(60_000_000, np.uint8), n_values=np.array([0]))
    assert path.stat().st_size < 60_000
    assert float(run_program(PEAK, arguments=(path,))) < 60 + 20


def test_rows_that_go_in_by_pieces_give_the_table_of_from_items(monkeypatch, tmp_path):
    monkeypatch.setattr(tensorhash._npz, "_PIECE_ROWS", 100)
    monkeypatch.setattr(tensorhash._npy, "_PIECE_BYTES", 1000)
    rng = np.random.default_rng(5)
    for keys in (rng.permutation(1234), rng.integers(0, 300, (1000, 2)).astype(">i8")[:, ::-1]):
        values = rng.random((len(keys), 3))
        path = savez(tmp_path / "t.npz", key=keys, n_values=np.array([1]), value_000=values)
        loaded = tensorhash.HashMap.load(path)
        expected = tensorhash.HashMap.from_items(keys, values)
        for got, wanted in zip(loaded.items(), expected.items(), strict=True):
            same(got, wanted)
        if keys.ndim == 1:
            assert loaded.capacity() == expected.capacity()
    savez(path, key=keys, n_values=np.array([1]), value_000=values[1:])
    with pytest.raises(ValueError, match=r"t\.npz: value_000: expected 1000 rows.* got 999"):
        tensorhash.HashMap.load(path)


def npy(shape, content=b"", descr="<i8", version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + content


def archive_of(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            with archive.open(name, "w", force_zip64=True) as member:
                for piece in content:
                    member.write(piece)
    return path


def zeros(count, step=1 << 20):
    for _ in range(count // step):
        yield bytes(step)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(run_program, tmp_path):
    rows = (420 << 20) // 8
    path = archive_of(
        tmp_path / "bomb.npz",
        {
            "key.npy": [npy((rows,)), *zeros(rows * 8)],
            "n_values.npy": [npy((1,), bytes(8))],
        },
    )
    assert path.stat().st_size < 1 << 20
    said = load_limited(run_program, path)
    assert said.startswith("refused") and "max_bytes=" in said, said


def test_many_small_bombs_count_together(tmp_path):
    members = {"n_values.npy": [npy((1,), struct.pack("<q", 40))]}
    for name in ["key", *(f"value_{column:03d}" for column in range(40))]:
        rows = (4 << 20) // 8
        members[f"{name}.npy"] = [npy((rows,)), *zeros(rows * 8)]
    path = archive_of(tmp_path / "bombs.npz", members)
    with pytest.raises(ValueError, match="its arrays would need"):
        tensorhash.HashMap.load(path)


def test_a_directory_that_understates_an_entry_is_noticed(tmp_path):
    # The directory says 128 bytes, the entry unpacks to 100 MB.
    rows = (100 << 20) // 8
    path = archive_of(
        tmp_path / "bomb.npz",
        {"key.npy": [npy((rows,)), *zeros(rows * 8)], "n_values.npy": [npy((1,), bytes(8))]},
    )
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 128)
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"bomb\.npz: not a readable"):
        tensorhash.HashMap.load(path)


def test_an_array_header_is_not_read_without_end(tmp_path):
    path = archive_of(
        tmp_path / "t.npz",
        {
            "key.npy": [b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31), *zeros(100 << 20)],
            "n_values.npy": [npy((1,), bytes(8))],
        },
    )
    with pytest.raises(ValueError, match="header"):
        tensorhash.HashMap.load(path, max_bytes=1 << 40)


@pytest.mark.parametrize("brackets", [500, 9000])
def test_an_array_header_nested_too_deep_is_refused(tmp_path, brackets):
    text = b"(" * brackets + b")" * brackets if brackets < 5000 else b"(" * brackets
    member = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text
    path = archive_of(
        tmp_path / "t.npz", {"key.npy": [member], "n_values.npy": [npy((1,), bytes(8))]}
    )
    with pytest.raises(ValueError, match=r"t\.npz"):
        tensorhash.HashMap.load(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_numpy_does_not_write_are_refused(tmp_path, method):
    path = archive_of(
        tmp_path / "t.npz",
        {"key.npy": [npy((1,), bytes(8))], "n_values.npy": [npy((1,), bytes(8))]},
        method,
    )
    with pytest.raises(ValueError, match="stored or deflated"):
        tensorhash.HashMap.load(path)


def test_bool_bytes_of_an_archive_are_0_or_1(tmp_path):
    def archive(content):
        return archive_of(
            tmp_path / "t.npz",
            {
                "key.npy": [npy((2,), content, "|b1")],
                "n_values.npy": [npy((1,), bytes(8))],
                "buf_index.npy": [npy((2,), struct.pack("<ii", 0, 1), "<i4")],
            },
        )

    with pytest.raises(ValueError, match="distinct"):
        tensorhash.HashSet.load(archive(b"\x02\x01"))
    table = tensorhash.HashSet.load(archive(b"\x00\x40"))
    table.validate()
    assert table.keys().view(np.uint8).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["t.thash", "t.npz"])
def test_max_bytes_is_checked_and_the_error_says_what_is_needed(tmp_path, name):
    table = tensorhash.HashMap.from_items(np.arange(1000), np.arange(1000.0))
    table.save(tmp_path / name)
    for cls in (tensorhash.HashMap, o3c.HashMap):
        same(cls.load(tmp_path / name, max_bytes=1 << 20).keys(), np.arange(1000))
        for most in (0, 100, 20_000):
            with pytest.raises(ValueError, match=rf"{name}.*max_bytes={most}"):
                cls.load(tmp_path / name, max_bytes=most)
        with pytest.raises(ValueError, match="max_bytes: expected 0 or more, got -1"):
            cls.load(tmp_path / name, max_bytes=-1)
        for wrong in ("1", 1.0, True):
            with pytest.raises(TypeError, match="max_bytes: expected an int or None"):
                cls.load(tmp_path / name, max_bytes=wrong)
        cls.load(tmp_path / name, max_bytes=2**80)


def test_bounded_and_sharded_tables_take_max_bytes(tmp_path):
    big = tensorhash.BoundedHashMap(3_000_000, "int64", (), "int8", ())
    big.activate([1, 2])
    big.save(tmp_path / "b.thash")
    with pytest.raises(ValueError, match="max_bytes=") as error:
        tensorhash.BoundedHashMap.load(tmp_path / "b.thash")
    needed = int(str(error.value).rpartition("max_bytes=")[2])
    loaded = tensorhash.BoundedHashMap.load(tmp_path / "b.thash", max_bytes=needed)
    assert (loaded.max_capacity, len(loaded), loaded.clock) == (3_000_000, 2, 1)
    cpus = ["cpu:0", "cpu:1"]
    sharded = tensorhash.ShardedHashMap(4_000_000, "int64", (), "int8", (), devices=cpus)
    sharded.activate([1, 2, 3])
    sharded.save(tmp_path / "s.thash")
    loaded = tensorhash.ShardedHashMap.load(tmp_path / "s.thash")
    assert loaded.size() == 3 and loaded.capacity() < 100, "spare room is not restored"
    loaded = tensorhash.ShardedHashMap.load(tmp_path / "s.thash", max_bytes=1 << 30)
    assert loaded.capacity() >= 4_000_000
    both = tensorhash.ShardedBoundedHashMap(4_000_000, "int64", (), "int8", (), devices=cpus)
    both.activate([1, 2, 3])
    both.save(tmp_path / "sb.thash")
    with pytest.raises(ValueError, match="max_bytes="):
        tensorhash.ShardedBoundedHashMap.load(tmp_path / "sb.thash")
    loaded = tensorhash.ShardedBoundedHashMap.load(tmp_path / "sb.thash", max_bytes=1 << 30)
    assert loaded.max_capacity == 4_000_000


def test_spare_room_out_of_proportion_is_not_restored_but_copies_and_pickles_keep_it(tmp_path):
    import copy
    import pickle

    table = tensorhash.HashMap(5_000_000, "int64", (), "float64", ())
    table.insert([1, 2], [0.5, 1.5])
    table.save(tmp_path / "t.thash")
    assert (tmp_path / "t.thash").stat().st_size < 200
    loaded = tensorhash.HashMap.load(tmp_path / "t.thash")
    assert loaded.capacity() == 2
    same(loaded.get([1, 2]), table.get([1, 2]))
    loaded.insert(np.arange(10, 1000), np.arange(990.0))
    loaded.validate()
    assert tensorhash.HashMap.load(tmp_path / "t.thash", max_bytes=1 << 30).capacity() == 5_000_000
    assert pickle.loads(pickle.dumps(table)).capacity() == 5_000_000
    assert copy.deepcopy(table).capacity() == 5_000_000


def test_pipes_are_errors_at_once(tmp_path):
    for name in ("p.thash", "p.npz", "p"):
        os.mkfifo(tmp_path / name)
        for cls in LOADERS:
            with pytest.raises(ValueError, match="regular file"):
                cls.load(tmp_path / name)
    with pytest.raises(ValueError, match="regular file"):
        tensorhash.BoundedHashMap.load(tmp_path / "p.thash")
    with pytest.raises(ValueError, match="regular file"):
        tensorhash.ShardedHashMap.load(tmp_path / "p.thash")


BRACKETS = b"\x93NUMPY\x02\x00" + struct.pack("<I", 9000) + b"(" * 9000


@pytest.mark.parametrize(
    "content",
    [
        BRACKETS,
        npy((2,), b"ab", "<U1"),
        npy((2,), bytes(16), "<M8[s]"),
        npy((2,), bytes(16), "|O"),
        npy((10**30,), bytes(16)),
        npy((0, 10**30), b""),
        npy((2**62,), bytes(16)),
        npy((2,), bytes(15)),
        npy((2,), bytes(17)),
        npy((-1,), bytes(16)),
        b"",
        b"\x93NUMPY\x01",
    ],
    ids=lambda content: repr(content[:60]),
)
def test_a_tensor_file_that_lies_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "t.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.npy: not a readable \.npy file: "):
        o3c.Tensor.load(path)


def test_a_tensor_file_has_bools_of_0_or_1_and_is_read_within_max_bytes(tmp_path):
    path = tmp_path / "t.npy"
    path.write_bytes(npy((3,), b"\x02\x01\x00", "|b1"))
    assert o3c.Tensor.load(path).numpy().view(np.uint8).tolist() == [1, 1, 0]
    np.save(path, np.arange(1000.0))
    size = path.stat().st_size
    assert o3c.Tensor.load(path, max_bytes=size).shape == (1000,)
    with pytest.raises(ValueError, match=rf"t\.npy: the file itself .*max_bytes={size}$"):
        o3c.Tensor.load(path, max_bytes=size - 1)
    with pytest.raises(TypeError, match="max_bytes: expected an int or None"):
        o3c.Tensor.load(path, max_bytes=1.5)
    loaded = o3c.Tensor.load(path)
    os.truncate(
        path, 0
    )  # the file was read, not mapped: this changes nothing and does not end the process
    same(loaded.numpy(), np.arange(1000.0))
    os.remove(path)
    os.mkfifo(path)
    with pytest.raises(ValueError, match="regular file"):
        o3c.Tensor.load(path)
