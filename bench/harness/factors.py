"""README's factors, as the tables of goals in bench/results.md have them. A test compares the two."""

from __future__ import annotations

from harness.goals import measured_texts, values_in

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


def phrases(results: str) -> list[str]:
    """The words of README with the factors of these results. KeyError if one was not measured."""
    texts = measured_texts(results)
    return [
        words.format(whole(values_in(texts[goal])[condition])) for words, goal, condition in FACTORS
    ]


def whole(factor: float) -> int:
    """Rounded down: README never claims more than was measured."""
    return int(factor)
