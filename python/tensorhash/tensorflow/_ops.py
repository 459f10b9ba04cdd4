"""Loads the op library at import."""

from __future__ import annotations

from tensorhash.tensorflow._build import import_tensorflow, load

ops = load()

# As with TensorFlow's tables, no gradient flows back to keys and defaults. Without this entry a
# tape that sees the op would raise.
for _name in ("Find", "Export", "Assign", "Update", "ShardSize"):
    import_tensorflow().no_gradient(f"Tensorhash{_name}")
