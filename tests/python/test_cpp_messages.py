"""Messages of the library also reach C++ and C users: only the bindings give advice on Python."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tensorhash

TOP = Path(__file__).resolve().parents[2]
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
PYTHON = re.compile(
    r"\bPython\b|\bnumpy\b|\b(np|th|tf|pd|pl|pa)\.|\btorch\b|astype|\w=\\\"|\bNone\b|\bimport\b"
)


def texts(path: Path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = line.split("//")[0]
        if not code.lstrip().startswith("#"):
            yield from ((number, match[1]) for match in TEXT.finditer(code))


def test_no_text_of_the_library_advises_python():
    files = [f for d in ("src", "include") for f in (TOP / d).rglob("*.[ch]pp")]
    assert len(files) > 100
    found = [
        f"{file.relative_to(TOP)}:{line}: {text}"
        for file in files
        for line, text in texts(file)
        if PYTHON.search(text)
    ]
    assert found == []


def test_python_says_how_to_cast():
    table = tensorhash.HashMap(0, "int64", (), "float32", ())
    with pytest.raises(TypeError) as error:
        table.insert(np.zeros(2, "int64"), np.zeros(2, "float64"))
    assert str(error.value) == (
        "values: expected float32, got float64; cast it first, with "
        'values.astype("float32") or values.to(torch.float32)'
    )
