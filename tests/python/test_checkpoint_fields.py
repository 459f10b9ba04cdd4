"""Checkpoints of distributed tables with a right checksum and wrong fields: a sentence each."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from tensorhash.distributed import load_hash_map  # noqa: E402

DEEP = "[" * 100_000


SAVE = """
import sys
import numpy as np, torch.distributed as dist
from tensorhash.distributed import DistributedHashMap
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=0, world_size=1)
table = DistributedHashMap(None, 0, "int64", (), "float32", (2,))
table.insert(np.arange(9), np.ones((9, 2), np.float32))
table.save(sys.argv[1] + "/checkpoint")
del table
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved")
    subprocess.run([sys.executable, "-c", SAVE, str(path)], check=True, timeout=300)
    return path / "checkpoint"


@pytest.fixture
def folder(saved, tmp_path):
    return pathlib.Path(shutil.copytree(saved, tmp_path / "checkpoint"))


def write_manifest(folder, facts):
    facts = {**facts, "crc32": ""}
    facts["crc32"] = f"{zlib.crc32(json.dumps(facts, sort_keys=True).encode()):08x}"
    (folder / "checkpoint.json").write_text(json.dumps(facts))


def read_shard(folder):
    file = next(folder.glob("*.thshard"))
    image = file.read_bytes()
    _, length, _ = struct.unpack_from("<8sII", image)
    return file, json.loads(image[16 : 16 + length]), image[16 + length :]


def write_shard(file, text, rows):
    prefix = struct.pack("<8sII", b"THSHARD1", len(text), zlib.crc32(text))
    file.write_bytes(prefix + text + rows)


def refused(folder, *words):
    with pytest.raises(ValueError) as error:
        load_hash_map(folder)
    for word in words:
        assert word in str(error.value), error.value


def test_a_checkpoint_that_nothing_was_done_to_is_read(folder):
    facts = json.loads((folder / "checkpoint.json").read_text())
    write_manifest(folder, facts)
    assert np.array_equal(load_hash_map(folder).keys(), np.arange(9))


@pytest.mark.parametrize("field", ["id", "count", "files", "key", "values", "policy"])
def test_a_manifest_without_a_field_is_a_sentence(folder, field):
    facts = json.loads((folder / "checkpoint.json").read_text())
    del facts[field]
    write_manifest(folder, facts)
    refused(folder, "checkpoint.json", "dtypes" if field in ("key", "values") else field)


@pytest.mark.parametrize(
    "field, value",
    [
        ("id", 5),
        ("count", -1),
        ("count", "9"),
        ("count", True),
        ("files", {}),
        ("files", [5]),
        ("files", [{"name": "x"}]),
        ("files", [{"name": "../x", "count": 9}]),
        ("files", [{"name": 5, "count": 9}]),
        ("key", 7),
        ("key", ["int64", ["1"]]),
        ("key", ["int64", [-1]]),
        ("key", ["int64", [2**63]]),
        ("values", [["float32", 5]]),
    ],
)
def test_a_manifest_with_a_wrong_field_is_a_sentence(folder, field, value):
    facts = json.loads((folder / "checkpoint.json").read_text())
    write_manifest(folder, {**facts, field: value})
    refused(folder, "checkpoint.json", "dtypes" if field in ("key", "values") else field)


@pytest.mark.parametrize("field", ["id", "count", "crc32", "key", "values", "policy"])
def test_a_file_without_a_field_is_a_sentence(folder, field):
    file, header, rows = read_shard(folder)
    del header[field]
    write_shard(file, json.dumps(header).encode(), rows)
    refused(folder, file.name, "dtypes" if field in ("key", "values") else field)


def test_deep_and_broken_json_is_a_sentence(folder):
    file, header, rows = read_shard(folder)
    for text in (DEEP, "{", "[]", "\x00"):
        write_shard(file, text.encode(), rows)
        refused(folder, file.name)
    write_shard(file, json.dumps({**header, "crc32": []}).encode(), rows)
    refused(folder, file.name, "crc32")
    for text in (DEEP, '{"a":' * 100_000, "[]", "5"):
        (folder / "checkpoint.json").write_text(text)
        refused(folder, "checkpoint.json", "damaged")
