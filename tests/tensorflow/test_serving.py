"""A SavedModel is served by a process that knows TensorFlow and the op library, and no tensorhash."""

from __future__ import annotations

import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

import tensorhash.tensorflow as thtf

SERVER = """
import sys
import numpy as np
import tensorflow as tf

tf.load_op_library(sys.argv[1])
served = tf.saved_model.load(sys.argv[2]).signatures["serving_default"]
name = next(iter(served.structured_input_signature[1]))
(out,) = served(**{name: tf.constant(np.load(sys.argv[3]))}).values()
np.save(sys.argv[4], out.numpy())
assert not any(name.split(".")[0] == "tensorhash" for name in sys.modules), "imported"
"""


def test_a_saved_model_runs_in_a_process_with_tensorflow_and_the_op_library_alone(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int64"),
            thtf.Embedding(4, combiner="mean"),
            keras.layers.Dense(2),
        ]
    )
    model.compile(thtf.optimizers.Adam(0.05), "mse")
    ids = np.arange(30).reshape(10, 3) * 10**12
    model.fit(ids, np.ones((10, 2), np.float32), verbose=0)
    model.export(tmp_path / "model", verbose=False)
    np.save(tmp_path / "in.npy", ids)
    run = subprocess.run(
        [sys.executable, "-c", SERVER, thtf.op_library(), tmp_path / "model", tmp_path / "in.npy",
         tmp_path / "out.npy"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), model(ids), rtol=1e-5)
    assert np.abs(np.load(tmp_path / "out.npy")).max() > 0


def test_a_table_that_a_module_fills_is_served(tmp_path):
    class Scores(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = thtf.HashTable(tf.int64, tf.float32, -1.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="ids")])
        def __call__(self, ids):
            return {"scores": self.table.lookup(ids)}

    scores = Scores()
    scores.table.insert([1, 2], [0.5, 0.25])
    tf.saved_model.save(scores, tmp_path / "model", signatures=scores.__call__)
    np.save(tmp_path / "in.npy", np.array([2, 3, 1]))
    run = subprocess.run(
        [sys.executable, "-c", SERVER, thtf.op_library(), tmp_path / "model", tmp_path / "in.npy",
         tmp_path / "out.npy"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    assert np.load(tmp_path / "out.npy").tolist() == [0.25, -1, 0.5]
