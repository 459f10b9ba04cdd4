"""StaticHashTable: a read-only table, filled once by an initialiser."""

from __future__ import annotations

from typing import Any, Literal, overload

import tensorflow as tf

from tensorhash.tensorflow._arguments import as_tensor
from tensorhash.tensorflow._composite import Composite
from tensorhash.tensorflow._errors import refuse
from tensorhash.tensorflow._natural import natural_tensor
from tensorhash.tensorflow._ops import ops
from tensorhash.tensorflow._saver import add_initializer
from tensorhash.tensorflow.table import LookupTable


class StaticHashTable(LookupTable):
    """A read-only table from keys to values.

    `initializer` is one of tf.lookup's (KeyValueTensorInitializer, TextFileInitializer, ...), a
    pair (keys, values) or a dict. Equal keys must have equal values. A SavedModel includes the
    contents.

    >>> table = StaticHashTable({7: 0.5, 9: 1.5}, default_value=-1.0)
    >>> table.lookup(tf.constant([9, 8])).numpy().tolist()
    [1.5, -1.0]
    """

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        name: str = "StaticHashTable",
        *,
        shared_name: str | None = None,
        container: str = "",
    ) -> None:
        with tf.init_scope():
            keys, values = _items(initializer, default_value)
            default = as_tensor("default_value", default_value, values.dtype)
        batch_rank = values.shape.rank - default.shape.rank
        creation = {}
        if shared_name is not None:
            creation = {"shared_name": shared_name, "container": container}
        super().__init__(keys.dtype, values.dtype, default, keys.shape[batch_rank:], creation, name)
        self._keys, self._values = keys, values
        with tf.init_scope():
            self._initializer = self._initialize()
            if self._in_session:
                add_initializer(self._initializer)

    @property
    def initializer(self) -> tf.Operation | None:
        """In a TensorFlow 1 graph, the operation that fills the table.

        tables_initializer() runs it too.
        """
        return self._initializer

    @overload  # type: ignore[override]
    def lookup(
        self,
        keys: Any,
        name: str | None = None,
        *,
        dynamic_default_values: Any = None,
        return_exists: Literal[False] = False,
    ) -> Composite: ...

    @overload
    def lookup(
        self,
        keys: Any,
        name: str | None = None,
        *,
        dynamic_default_values: Any = None,
        return_exists: bool,
    ) -> Composite | tuple[Composite, Composite]: ...

    # The argument order of tf.lookup.StaticHashTable, which has no dynamic_default_values.
    def lookup(
        self,
        keys: Any,
        name: str | None = None,
        *,
        dynamic_default_values: Any = None,
        return_exists: bool = False,
    ) -> Composite | tuple[Composite, Composite]:
        """The values of `keys`, as HashTable.lookup."""
        # Not super(), because AutoGraph does not convert it.
        return LookupTable.lookup(
            self, keys, dynamic_default_values, name, return_exists=return_exists
        )

    def _create_resource(self) -> tf.Tensor:
        if self._creation:
            return ops.tensorhash_static_table(**self._attributes())
        if self._in_session:
            return ops.tensorhash_static_table(
                **self._attributes(), use_node_name_sharing=True, name=self._name
            )
        return ops.tensorhash_anonymous_static_table(**self._attributes())

    def _initialize(self) -> Any:
        return ops.tensorhash_initialize(
            table=self.resource_handle,
            keys=self._keys,
            values=self._values,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
        )


def _items(initializer: Any, default_value: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """The (keys, values) of an initialiser."""
    if isinstance(initializer, dict):
        initializer = (list(initializer.keys()), list(initializer.values()))
    if isinstance(initializer, tuple | list):
        if len(initializer) != 2:
            raise refuse(
                f"initializer: expected a pair of keys and values, got {len(initializer)} elements"
            )
        keys, values = initializer
        return natural_tensor("keys", keys), natural_tensor("values", values)
    # TensorFlow's initialisers fill only TensorFlow's tables, so fill one and export it.
    if isinstance(initializer, tf.lookup.KeyValueTensorInitializer):
        return initializer._keys, initializer._values
    default = as_tensor("default_value", default_value, initializer.value_dtype)
    filled = tf.lookup.StaticHashTable(initializer, default)
    # In a session the table is empty until its initialiser has run.
    with tf.control_dependencies(None if tf.executing_eagerly() else [filled._init_op]):
        keys, values = filled.export()
    for part in (keys, values):
        part.set_shape([None])  # keys and values are scalars; a graph does not know their shape
    return keys, values
