"""Tables in .keras and .weights.h5 files."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorhash.tensorflow.table import HashTable


def save_table(store: Any, name: str, table: HashTable) -> None:
    """Writes the entries as `name`_keys and `name`_values; strings as bytes and lengths.

    Of a bounded table the whole state, as `name`_state.
    """
    if table.max_capacity is not None:
        store[f"{name}_state"] = table._save_state().numpy()
        return
    keys, values = table.export()
    store[f"{name}_values"] = values.numpy()
    if keys.dtype == tf.string:
        store[f"{name}_lengths"] = tf.strings.length(keys).numpy()
        keys = tf.io.decode_raw(tf.strings.reduce_join(keys), tf.uint8)
    store[f"{name}_keys"] = keys.numpy()


def load_table(store: Any, name: str, table: HashTable) -> None:
    """Replaces the entries by those of save_table."""
    if table.max_capacity is not None:
        table._restore_state(tf.convert_to_tensor(np.asarray(store[f"{name}_state"])))
        return
    keys: Any = np.asarray(store[f"{name}_keys"])
    if table.key_dtype == tf.string:
        ends = np.cumsum(np.asarray(store[f"{name}_lengths"]))
        keys = [part.tobytes() for part in np.split(keys, ends[:-1])] if len(ends) else []
    keys = tf.convert_to_tensor(keys, table.key_dtype)
    table._import(keys, tf.convert_to_tensor(np.asarray(store[f"{name}_values"])))
