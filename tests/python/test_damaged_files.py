"""Truncated, changed and foreign files; processes killed while saving."""

import struct
import zipfile
import zlib

import numpy as np
import pytest
from in_full import times
from oracle import same

import tensorhash

COUNT = {".thash": 10_000, ".npz": 3000}


def make_table(rows=40):
    table = tensorhash.HashMap(rows, "int32", (2,), "float32", (1,))
    keys = np.random.default_rng(0).integers(-1000, 1000, (rows, 2)).astype(np.int32)
    table.insert(keys, keys[:, :1].astype(np.float32))
    table.erase(keys[::5])
    return table


def listing(table):
    arrays = [table.active_buf_indices(), table.keys()]
    values = table.items()[1]
    arrays += values if isinstance(values, tuple) else [values]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


def write(path, data):
    """Writes a new file: some file systems sync at once if a file is truncated and rewritten."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def mutate(data, rng):
    """Changes bits or bytes, cuts, extends, moves a part, or makes a number extreme."""
    data = bytearray(data)
    kind = rng.integers(0, 7)
    place = int(rng.integers(0, len(data)))
    if kind == 0:
        data[place] ^= 1 << int(rng.integers(0, 8))
    elif kind == 1:
        for _ in range(int(rng.integers(1, 20))):
            data[int(rng.integers(0, len(data)))] = int(rng.integers(0, 256))
    elif kind == 2:
        del data[place:]
    elif kind == 3:
        data += rng.bytes(int(rng.integers(1, 64)))
    elif kind == 4:
        del data[place : place + int(rng.integers(1, 32))]
    elif kind == 5:
        data[place:place] = rng.bytes(int(rng.integers(1, 16)))
    else:
        number = [0, -1, 2**31, 2**62, -(2**63), 2**32 - 1][int(rng.integers(0, 6))]
        part = struct.pack("<q", number)
        data[place : place + 8] = part[: len(data) - place]
    return bytes(data)


def test_ten_thousand_mutated_native_files_are_an_error_every_time(tmp_path):
    rng = np.random.default_rng(1)
    make_table().save(tmp_path / "good.thash")
    good = (tmp_path / "good.thash").read_bytes()
    path = tmp_path / "bad.thash"
    tried = 0
    while tried < COUNT[".thash"]:
        bad = mutate(good, rng)
        if bad == good:
            continue
        tried += 1
        write(path, bad)
        with pytest.raises(ValueError):
            tensorhash.HashMap.load(path)


def test_mutated_npz_files_are_an_error_or_the_same_table(tmp_path):
    # Some bytes of a zip file do not affect its content (dates, attributes): those may change.
    rng = np.random.default_rng(2)
    table = make_table()
    table.save(tmp_path / "good.npz")
    good = (tmp_path / "good.npz").read_bytes()
    path = tmp_path / "bad.npz"
    expected = listing(table)
    errors = 0
    for _ in range(COUNT[".npz"]):
        write(path, mutate(good, rng))
        try:
            loaded = tensorhash.HashMap.load(path)
        except ValueError as error:
            errors += 1
            assert "bad.npz" in str(error)
        else:
            assert listing(loaded) == expected
    assert errors > COUNT[".npz"] * 0.7


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_every_truncation_is_an_error(tmp_path, suffix):
    make_table(8).save(tmp_path / f"good{suffix}")
    good = (tmp_path / f"good{suffix}").read_bytes()
    path = tmp_path / f"bad{suffix}"
    for length in range(len(good)):
        write(path, good[:length])
        with pytest.raises(ValueError):
            tensorhash.HashMap.load(path)


FOREIGN = {
    "nothing": b"",
    "one byte": b"T",
    "text": b"Hello, this is a letter to my grandmother.\n" * 20,
    "zeros": bytes(5000),
    "ones": b"\xff" * 5000,
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(200),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(500),
    "empty zip": b"PK\x05\x06" + bytes(18),
    "pickle": b"\x80\x04K\x05.",
    "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }",
    "gzip": b"\x1f\x8b\x08\x00" + zlib.compress(bytes(300)),
}


@pytest.mark.parametrize("name", ["x.thash", "x.npz", "x", "x.dat"])
@pytest.mark.parametrize("content", FOREIGN)
def test_foreign_files_are_an_error_that_says_so(tmp_path, name, content):
    (tmp_path / name).write_bytes(FOREIGN[content])
    for cls in (tensorhash.HashMap, tensorhash.HashSet):
        with pytest.raises(ValueError) as error:
            cls.load(tmp_path / name)
        assert len(str(error.value)) > 20


def test_files_under_the_suffix_of_the_other_format_are_not_misread(tmp_path):
    table = make_table()
    table.save(tmp_path / "a.thash")
    table.save(tmp_path / "b.npz")
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.thash").read_bytes())
    (tmp_path / "b.thash").write_bytes((tmp_path / "b.npz").read_bytes())
    for name in ("a.npz", "b.thash"):
        with pytest.raises(ValueError):
            tensorhash.HashMap.load(tmp_path / name)


KEY, ONE = np.arange(3), np.array([1])
BAD_ARCHIVES = {
    "no key": {"n_values": np.array([0])},
    "no n_values": {"key": KEY},
    "no value_000": {"key": KEY, "n_values": ONE},
    "no value_001": {"key": KEY, "n_values": np.array([2]), "value_000": KEY},
    "negative n_values": {"key": KEY, "n_values": np.array([-1])},
    "huge n_values": {"key": KEY, "n_values": np.array([2**62])},
    "float n_values": {"key": KEY, "n_values": np.array([1.0]), "value_000": KEY},
    "two n_values": {"key": KEY, "n_values": np.array([1, 1]), "value_000": KEY},
    "short values": {"key": KEY, "n_values": ONE, "value_000": KEY[:2]},
    "scalar key": {"key": np.array(5), "n_values": np.array([0])},
    "scalar value": {"key": KEY, "n_values": ONE, "value_000": np.array(5)},
    "complex key": {"key": KEY.astype(complex), "n_values": np.array([0])},
    "half key": {"key": KEY.astype(np.float16), "n_values": np.array([0])},
    "text key": {"key": np.array(["a", "b"]), "n_values": np.array([0])},
    "empty elements": {"key": np.zeros((3, 0), np.int64), "n_values": np.array([0])},
    "float buf_index": {"key": KEY, "n_values": np.array([0]), "buf_index": KEY.astype(float)},
    "short buf_index": {"key": KEY, "n_values": np.array([0]), "buf_index": np.int32([0, 1])},
    "negative buf_index": {
        "key": KEY,
        "n_values": np.array([0]),
        "buf_index": np.int32([0, -1, 1]),
    },
    "double buf_index": {"key": KEY, "n_values": np.array([0]), "buf_index": np.int32([0, 1, 1])},
    "equal keys at two indices": {
        "key": np.array([5, 5, 6]),
        "n_values": np.array([0]),
        "buf_index": np.int32([0, 1, 2]),
    },
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_archives_that_contradict_themselves_are_an_error(tmp_path, case):
    np.savez(tmp_path / "bad.npz", **BAD_ARCHIVES[case])
    with pytest.raises(ValueError, match=r"bad\.npz"):
        tensorhash.HashMap.load(tmp_path / "bad.npz")


def test_python_objects_in_an_archive_are_never_loaded(tmp_path):
    np.savez(
        tmp_path / "bad.npz", key=np.array([1, "x", None], dtype=object), n_values=np.array([0])
    )
    with pytest.raises(ValueError):
        tensorhash.HashMap.load(tmp_path / "bad.npz")


def test_an_archive_that_claims_more_than_it_holds_is_an_error(tmp_path):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }"
    for rows in (10**18, 2**62, 10**9):
        text = (header % rows).ljust(117) + "\n"
        npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(80)
        with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
            archive.writestr("key.npy", npy)
        with pytest.raises(ValueError):
            tensorhash.HashMap.load(tmp_path / "bad.npz")


@pytest.mark.parametrize("suffix", [".thash", ".npz"])
def test_a_process_killed_while_saving_leaves_the_old_or_the_new_file(
    run_program, tmp_path, suffix
):
    # Children are forks of a small process, so that many of them take only seconds.
    run_program(
        """
        import os, random, signal, sys, time
        import numpy as np
        import tensorhash

        folder, suffix, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
        path = os.path.join(folder, "table" + suffix)

        def table(seed):
            keys = np.random.default_rng(seed).integers(0, 1 << 60, 20_000 + seed)
            return tensorhash.HashMap.from_items(keys, keys ^ seed)

        tables = [table(seed) for seed in range(2)]
        contents = [[array.tobytes() for array in one.items()] for one in tables]
        tables[0].save(path)
        random.seed(3)
        seen = [0, 0]
        for kill in range(kills):
            child = os.fork()
            if child == 0:
                turn = kill
                while True:
                    turn += 1
                    tables[turn % 2].save(path)
            time.sleep(random.random() * 0.03)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            loaded = tensorhash.HashMap.load(path)
            now = [array.tobytes() for array in loaded.items()]
            assert now in contents
            seen[contents.index(now)] += 1
            if kill % 20 == 0:
                loaded.validate()
        assert min(seen) > kills // 20, seen
        tables[0].save(path)
        left = [name for name in os.listdir(folder) if name.startswith((".", "table"))]
        assert left == ["table" + suffix], left
        now = [array.tobytes() for array in tensorhash.HashMap.load(path).items()]
        assert now == contents[0]
        """,
        arguments=(tmp_path, suffix, times(200, 50)),
    )
    loaded = tensorhash.HashMap.load(tmp_path / f"table{suffix}")
    same(loaded.active_buf_indices(), np.arange(20_000, dtype=np.int32))
