"""The op library, loaded when this module is."""

from __future__ import annotations

from tensorhash.tensorflow._build import import_tensorflow, load

ops = load()

# A tape that meets an op without an entry raises, whatever it was asked for: what a table answers depends on keys and
# defaults, but nothing flows back to them, as with TensorFlow's tables.
for _name in ("Find", "Export", "Assign", "Update", "ShardSize"):
    import_tensorflow().no_gradient(f"Tensorhash{_name}")
