"""TensorFlow lookup tables and a Keras embedding layer, based on tensorhash.

>>> import tensorflow as tf, tensorhash.tensorflow as thtf
>>> table = thtf.HashTable(tf.int64, tf.float32, default_value=[0.0, 0.0])
>>> table.insert([7, 9], [[1.0, 2.0], [3.0, 4.0]])
>>> table.lookup([9, 8]).numpy()
array([[3., 4.],
       [0., 0.]], dtype=float32)

The first import compiles the op library for the installed TensorFlow, into the user's cache. Import
this module before you load a SavedModel with such a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorhash.tensorflow._ops import ops
from tensorhash.tensorflow.static_table import StaticHashTable
from tensorhash.tensorflow.table import HashTable

if TYPE_CHECKING:
    from tensorhash.tensorflow.embedding import Embedding

__all__ = ["Embedding", "HashTable", "StaticHashTable", "ops"]


def __getattr__(name: str) -> type[Embedding]:
    # Keras takes seconds to import; tables do not need it.
    if name == "Embedding":
        from tensorhash.tensorflow.embedding import Embedding

        return Embedding
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
