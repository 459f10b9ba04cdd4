"""Loads the op library at import."""

from __future__ import annotations

from tensorhash.tensorflow._build import import_tensorflow, load

ops = load()

# As with TensorFlow's tables, no gradient flows back to keys and defaults. Without this entry a
# tape that sees the op would raise.
_WITH_OUTPUTS = (
    "Find", "Locate", "Export", "Assign", "Update", "ShardSize", "Admit", "ExportScores",
    "SaveState",
)  # fmt: skip
for _name in _WITH_OUTPUTS:
    import_tensorflow().no_gradient(f"Tensorhash{_name}")
