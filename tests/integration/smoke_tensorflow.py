"""Uses tensorhash-tf beside tensorhash and TensorFlow, with no compiler and no cache.

usage: smoke_tensorflow.py MINOR, for example 2.21
"""

from __future__ import annotations

import sys

import tensorflow as tf

import tensorhash.tensorflow as thtf
from tensorhash.tensorflow import _build

assert tf.__version__.startswith(sys.argv[1] + "."), tf.__version__
library = _build.library()
assert library.parent.name == "tensorhash_tf", library

table = thtf.HashTable(tf.int64, tf.float32, default_value=[0.0, 0.0])
table.insert([7, 9], [[1.0, 2.0], [3.0, 4.0]])
assert table.lookup([9, 8]).numpy().tolist() == [[3, 4], [0, 0]]
layer = thtf.Embedding(2, combiner="sum", embeddings_initializer="ones")
model = tf.keras.Sequential([layer])
model.compile(thtf.optimizers.Adam(0.1), "mse")
model.fit(tf.constant([[1, 2]], tf.int64), tf.zeros((1, 2)), verbose=0)
assert layer.table.lookup([1]).numpy()[0, 0] < 1
print(f"    tensorhash-tf with TensorFlow {tf.__version__}: {library.name}")
