"""Untrusted checkpoints: manifests and headers that lie, lack fields or nest too deep."""

import io
import json
import os
import struct
import zlib

import numpy as np
import pytest
from limited_memory import LIMITED

import tensorhash


def checkpoint(folder, rows=100):
    """A checkpoint of one rank, without a process group."""
    pytest.importorskip("torch")
    from tensorhash.distributed import checkpoint, shard_file

    folder.mkdir()
    table = tensorhash.HashMap.from_items(np.arange(rows), np.arange(rows) * 0.5)
    name = checkpoint._file_name("0" * 16, 0, 1)
    shard_file.write(str(folder / name), table, {"id": "0" * 16, "rank": 0, "ranks": 1})
    checkpoint._write_manifest(str(folder), table, "0" * 16, [rows])
    return folder / name


def load_checkpoint(folder, **options):
    from tensorhash.distributed import load_hash_map

    return load_hash_map(folder, **options)


def change_manifest(folder, change):
    """Changes fields of a manifest and updates its checksum."""
    path = folder / "checkpoint.json"
    facts = json.loads(path.read_text())
    change(facts)
    if "crc32" in facts:
        text = json.dumps({**facts, "crc32": ""}, sort_keys=True)
        facts["crc32"] = f"{zlib.crc32(text.encode()):08x}"
    path.write_text(json.dumps(facts))


def change_header(path, change):
    """Does the same with the header of a rank's file."""
    data = path.read_bytes()
    _, length, _ = struct.unpack_from("<8sII", data)
    header = json.loads(data[16 : 16 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(
        struct.pack("<8sII", b"THSHARD1", len(text), zlib.crc32(text)) + text + data[16 + length :]
    )


def test_a_checkpoint_loads_within_max_bytes(tmp_path):
    checkpoint(tmp_path / "c", 5000)
    assert load_checkpoint(tmp_path / "c").size() == 5000
    with pytest.raises(ValueError, match="max_bytes=") as error:
        load_checkpoint(tmp_path / "c", max_bytes=100_000)
    needed = int(str(error.value).rpartition("max_bytes=")[2])
    assert load_checkpoint(tmp_path / "c", max_bytes=needed).size() == 5000


@pytest.mark.parametrize("count", [2**31 - 1, 2**40, 101, 99, 0])
def test_a_manifest_with_a_count_that_differs_from_its_files_is_refused(
    run_program, tmp_path, count
):
    checkpoint(tmp_path / "c")

    def change(facts):
        facts["count"] = count

    change_manifest(tmp_path / "c", change)
    if count == 2**31 - 1:
        call = "tensorhash.distributed.load_hash_map(sys.argv[1])"
        program = LIMITED.replace("import tensorhash\n", "import tensorhash.distributed\n")
        said = run_program(program + f"attempt(lambda: {call})", arguments=(tmp_path / "c",))
        assert said.startswith("refused"), said
    with pytest.raises(ValueError, match=rf"checkpoint\.json: expected files with {count} rows"):
        load_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("field", ["id", "count", "key", "values", "policy", "files", "format"])
def test_a_manifest_without_a_field_says_which(tmp_path, field):
    checkpoint(tmp_path / "c")
    change_manifest(tmp_path / "c", lambda facts: facts.pop(field))
    with pytest.raises(ValueError, match=rf"checkpoint\.json: the field '{field}' is missing"):
        load_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("field", ["id", "rank", "count", "key", "values", "policy", "crc32"])
def test_a_file_of_a_checkpoint_without_a_field_says_which(tmp_path, field):
    path = checkpoint(tmp_path / "c")
    change_header(path, lambda facts: facts.pop(field))
    with pytest.raises(ValueError, match=rf"thshard: the field '{field}' is missing"):
        load_checkpoint(tmp_path / "c")


WRONG = {
    "count": [None, "5", 1.5, True, -1, [], 2**70],
    "id": [None, 5, []],
    "key": [None, [], ["int64"], ["int64", [0]], ["int64", [-1, -1]], ["int64", [1.0]], ["x", []]],
    "values": [None, {}, [5], [["float64", [2**40, 2**40]]], [["float64", [True]]]],
    "policy": [None, "other", []],
}


@pytest.mark.parametrize("where", ["manifest", "header"])
@pytest.mark.parametrize("field", WRONG)
def test_fields_of_another_kind_are_refused(tmp_path, where, field):
    for number, wrong in enumerate(WRONG[field]):
        folder = tmp_path / f"{number}"
        path = checkpoint(folder)

        def change(facts, wrong=wrong):
            facts[field] = wrong

        if where == "manifest":
            change_manifest(folder, change)
        else:
            change_header(path, change)
        with pytest.raises(ValueError, match=r"checkpoint\.json|thshard"):
            load_checkpoint(folder)


def test_deep_json_is_refused(tmp_path):
    deep = b"[" * 100_000 + b"]" * 100_000
    path = checkpoint(tmp_path / "c")
    header = struct.pack("<8sII", b"THSHARD1", len(deep), zlib.crc32(deep)) + deep
    path.write_bytes(header)
    with pytest.raises(ValueError, match="thshard: not readable as JSON"):
        load_checkpoint(tmp_path / "c")
    (tmp_path / "c" / "checkpoint.json").write_bytes(b'{"format": ' + deep + b"}")
    with pytest.raises(ValueError, match=r"checkpoint\.json: not readable as JSON"):
        load_checkpoint(tmp_path / "c")


@pytest.mark.parametrize(
    "name", ["../x.thshard", "/etc/passwd", "", ".", "a/b.thshard", "x\0.thshard", 5, None]
)
def test_a_manifest_names_files_of_its_own_folder_only(tmp_path, name):
    checkpoint(tmp_path / "c")

    def change(facts):
        facts["files"][0]["name"] = name

    change_manifest(tmp_path / "c", change)
    with pytest.raises(ValueError, match=r"checkpoint\.json"):
        load_checkpoint(tmp_path / "c")


def test_a_manifest_names_no_file_twice(tmp_path):
    checkpoint(tmp_path / "c")

    def change(facts):
        facts["files"] *= 1000
        facts["count"] *= 1000

    change_manifest(tmp_path / "c", change)
    with pytest.raises(ValueError, match="twice"):
        load_checkpoint(tmp_path / "c")


def test_a_pipe_in_place_of_a_file_is_an_error_at_once(tmp_path):
    path = checkpoint(tmp_path / "c")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="expected a regular file"):
        load_checkpoint(tmp_path / "c")


def test_damaged_headers_never_cause_another_error(tmp_path):
    """Random changes of a file's JSON header with a valid checksum: an error or the same table."""
    rng = np.random.default_rng(5)
    path = checkpoint(tmp_path / "c", 20)
    good = path.read_bytes()
    _, length, _ = struct.unpack_from("<8sII", good)
    for _ in range(1500):
        text = bytearray(good[16 : 16 + length])
        for _ in range(int(rng.integers(1, 4))):
            text[int(rng.integers(0, length))] = int(rng.choice(list(b'0123456789-[]{}",:eln.')))
        image = io.BytesIO()
        image.write(struct.pack("<8sII", b"THSHARD1", length, zlib.crc32(text)))
        image.write(text + good[16 + length :])
        path.write_bytes(image.getvalue())
        try:
            assert load_checkpoint(tmp_path / "c").size() == 20
        except ValueError as error:
            assert "thshard" in str(error) or "checkpoint.json" in str(error)


@pytest.mark.parametrize("which", ["key", "values"])
@pytest.mark.parametrize(
    "spec",
    [
        ["int64", [10**30]],
        ["int64", [2**62]],
        ["int64", [2**61, 2**61]],
        ["int64", [1] * 70],
        ["float16", []],
        ["bfloat16", []],
    ],
    ids=str,
)
def test_impossible_elements_are_refused_with_the_name_of_the_file(tmp_path, spec, which):
    path = checkpoint(tmp_path / "c", 0)

    def change(facts):
        facts[which] = spec if which == "key" else [spec]

    change_manifest(tmp_path / "c", change)
    change_header(path, change)
    if which == "values" and "float16" in spec[0]:
        assert load_checkpoint(tmp_path / "c").size() == 0  # legal for values
        return
    with pytest.raises(ValueError, match=r"checkpoint\.json: .*(dtype|shape)"):
        load_checkpoint(tmp_path / "c")
