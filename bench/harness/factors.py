"""README's factors, as the tables of goals in bench/results.md have them. A test compares the two."""

from __future__ import annotations

import re
from pathlib import Path

from harness.goals import measured_texts, values_in
from harness.store import ROOT

README = ROOT / "README.md"
# What README says, the name of the goal, and the condition of the value.
FACTORS = (
    ("{}x `np.unique(axis=0)`", "unique of 10^6 int32 x 3, against np.unique(axis=0)", ""),
    ("{}x `torch.unique(dim=0)`", "unique of 10^6 int32 x 3, against torch.unique(dim=0)", ""),
    (
        "{}x spconv for a 3^3 kernel on 10^5 LiDAR voxels",
        "kernel map 3^3 of 1e5 voxels, against spconv",
        "LiDAR",
    ),
    ("{}x for 7^3", "kernel map 7^3 of 1e5 voxels, against spconv", "LiDAR"),
    (
        "{}x the lookups per second of TensorFlow's faster table, with vectors of 16 floats",
        "lookup, vectors, against TensorFlow's better table",
        "dim 16",
    ),
)


def updated(readme: str, results: str) -> str:
    """README with the factors of these results. One that was not measured stays as it is."""
    texts = measured_texts(results)
    for words, goal, condition in FACTORS:
        value = values_in(texts.get(goal, "")).get(condition)
        if value is None:
            continue
        after = r"\s+".join(map(re.escape, words.removeprefix("{}").split()))
        # Rounded down: README never claims more than the results.
        readme, count = re.subn(rf"\d+(?={after})", str(int(value)), readme)
        if count != 1:
            raise ValueError(f"README.md: expected {words!r} once, found it {count} times")
    return readme


def write(results: str) -> Path:
    """Writes README.md with the factors of these results."""
    README.write_text(updated(README.read_text(), results))
    return README
