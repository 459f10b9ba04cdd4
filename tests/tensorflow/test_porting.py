"""The names that the porting pages for TensorFlow offer exist."""

import inspect
import pathlib
import re

import pytest

import tensorhash.tensorflow as thtf

PORTING = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/porting"
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")


@pytest.mark.parametrize("page", ["tf-lookup.md", "tfra.md"])
def test_the_names_exist(page):
    rows = [line for line in (PORTING / page).read_text().splitlines() if line.startswith("| ")]
    cells = [row.strip("|").split(" | ")[1] for row in rows[1:]]
    names = {name for cell in cells for name in NAME.findall(cell)}
    # Names of TensorFlow, and arguments.
    names -= {"tf.strings.to_hash_bucket_strong", "default_value", "DistributedHashMap"}
    names -= {"MutableHashTable", "dtype", *inspect.signature(thtf.Embedding).parameters}
    assert len(names) >= 8
    missing = []
    for name in sorted(names):
        found = thtf
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None:
            missing.append(name)
    assert missing == []
