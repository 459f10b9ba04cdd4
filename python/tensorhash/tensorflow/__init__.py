"""TensorFlow lookup tables and a Keras embedding layer, based on tensorhash.

>>> import tensorflow as tf, tensorhash.tensorflow as thtf
>>> table = thtf.HashTable(tf.int64, tf.float32, default_value=[0.0, 0.0])
>>> table.insert([7, 9], [[1.0, 2.0], [3.0, 4.0]])
>>> table.lookup([9, 8]).numpy()
array([[3., 4.],
       [0., 0.]], dtype=float32)

The op library comes from the package tensorhash-tf; without it, the first import compiles it into
the user's cache. Import this module before you load a SavedModel with such a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorhash.tensorflow._build import library
from tensorhash.tensorflow._ops import ops
from tensorhash.tensorflow.static_table import StaticHashTable
from tensorhash.tensorflow.table import HashTable

if TYPE_CHECKING:
    from tensorhash.tensorflow import optimizers
    from tensorhash.tensorflow.embedding import Embedding

__all__ = ["Embedding", "HashTable", "StaticHashTable", "op_library", "ops", "optimizers"]


def op_library() -> str:
    """The path of the op library, for tf.load_op_library in a process without tensorhash.

    >>> op_library().endswith(".so")
    True
    """
    return str(library())


def __getattr__(name: str) -> Any:
    # Keras takes seconds to import; tables do not need it.
    if name == "Embedding":
        from tensorhash.tensorflow.embedding import Embedding

        return Embedding
    if name == "optimizers":
        import importlib

        return importlib.import_module("tensorhash.tensorflow.optimizers")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
