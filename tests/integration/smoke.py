"""Uses the installed package in an environment with NumPy only."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys

import numpy as np

import tensorhash
from tensorhash import cli

for name in ("torch", "jax", "tensorflow", "ml_dtypes"):
    assert importlib.util.find_spec(name) is None, f"{name} is here: this is no clean environment"

table = tensorhash.HashMap(
    init_capacity=4,
    key_dtype="int64",
    key_element_shape=(),
    value_dtype="float32",
    value_element_shape=(2,),
)
keys = np.array([7, -1, 7, 0])
values = np.arange(8, dtype=np.float32).reshape(4, 2)
indices, inserted = table.insert(keys, values)
assert indices.tolist() == [0, 1, 0, 2], indices
assert inserted.tolist() == [True, True, False, True], inserted
assert np.array_equal(table.get(keys[:2]), values[:2])
assert tensorhash.__version__ == importlib.metadata.version("tensorhash")
assert tensorhash.unique(keys).tolist() == [7, -1, 0]
table.validate()
assert cli.main(["info", "--json"]) == 0
loaded = [m for m in ("torch", "jax", "tensorflow") if m in sys.modules]
assert not loaded, loaded
try:
    import tensorhash.tensorflow
except ImportError as error:
    assert "needs TensorFlow" in str(error), error
else:
    raise AssertionError("tensorhash.tensorflow was imported without TensorFlow")
print(f"    tensorhash {tensorhash.__version__} works in a clean environment: {table!r}")
