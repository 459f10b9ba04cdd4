"""The methods of a table over several devices, as in tensorhash.ShardedHashMap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import tensorflow as tf

from tensorhash.optim import SGD
from tensorhash.tensorflow._composite import Composite
from tensorhash.tensorflow._errors import refuse
from tensorhash.tensorflow._ops import ops

EVERYTHING = 2**63 - 1


def check_placement(devices: Any, policy: Any) -> tuple[list[str], str]:
    """(device names, policy name), checked."""
    if isinstance(devices, str) or not isinstance(devices, Sequence):
        raise refuse(f'devices: expected a list such as ["cpu:0", "cpu:1"], got {devices!r}')
    for device in devices:
        if not isinstance(device, str):
            raise refuse(f'devices: expected names such as "cpu:0", got {device!r}')
    if not isinstance(policy, str):
        raise refuse(
            f'policy: expected "hash" or "mod", got {policy!r}; an op cannot call a Python function'
        )
    return list(devices), policy


def tensorflow_device(devices: Sequence[str]) -> str | None:
    """The TensorFlow device that has the table's handle: the GPU of the first shard, if any."""
    kind, _, number = devices[0].lower().partition(":")
    if kind != "cuda" or not tf.config.list_logical_devices("GPU"):
        return None
    return f"/GPU:{number or 0}"


class DeviceVerbs:
    """A mixin of HashTable. A table without `devices` has one shard, on "cpu:0"."""

    _devices: list[str]

    @property
    def devices(self) -> list[str]:
        """The device of each shard."""
        return list(self._devices)

    def _shard_on(self, device: str) -> int:
        if device not in self._devices:
            raise refuse(f"device: expected one of {', '.join(self._devices)}, got {device!r}")
        return self._devices.index(device)

    def set(self: Any, keys: Any, values: Any, name: str | None = None) -> tf.Tensor:
        """Overwrites the values of existing keys; of equal keys the last row wins.

        Returns a bool tensor: which keys were in the table.
        """
        return ops.tensorhash_assign(
            table=self.resource_handle,
            keys=self._key_rows(keys),
            values=self._value_rows("values", values),
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            name=name,
        )

    def get(
        self: Any, keys: Any, dynamic_default_values: Any = None, name: str | None = None
    ) -> Composite:
        """The values of `keys`: another name of lookup()."""
        return self.lookup(keys, dynamic_default_values, name)

    def update(
        self: Any,
        keys: Any,
        gradients: Any,
        optimizer: SGD,
        *,
        duplicates: str = "in_order",
        name: str | None = None,
    ) -> tf.Tensor:
        """Makes one step of tensorhash.optim.SGD for each row with an existing key.

        Returns a bool tensor: which keys were in the table. Rows of equal keys step in order,
        or once with their "sum". A compiled function keeps the optimizer's settings from its trace.
        """
        if not isinstance(optimizer, SGD) or optimizer.momentum != 0:
            raise refuse(
                "optimizer: expected tensorhash.optim.SGD without momentum, because a table holds "
                f"no state besides its values, got {optimizer!r}"
            )
        return ops.tensorhash_update(
            table=self.resource_handle,
            keys=self._key_rows(keys),
            gradients=self._value_rows("gradients", gradients),
            settings=tf.constant([optimizer.lr, optimizer.weight_decay], tf.float64),
            duplicates=duplicates,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            name=name,
        )

    def get_size(self: Any, device: str | None = None, name: str | None = None) -> tf.Tensor:
        """The number of entries on one device, or on all: a scalar int64."""
        if device is None:
            return self.size(name)
        shard = tf.constant(self._shard_on(device), tf.int64)
        return ops.tensorhash_shard_size(table=self.resource_handle, shard=shard, name=name)

    def insert_from_cpu(
        self: Any, device: str, keys: Any, values: Any, name: str | None = None
    ) -> tf.Operation | None:
        """insert() for keys that all belong to `device`; an error names a row that does not."""
        return self._accumulate(keys, values, "last", self._shard_on(device), name)

    def dump_to_cpu(
        self: Any, device: str | None = None, name: str | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(keys, values) of one device, or of all, from one point in time."""
        begin, end = 0, EVERYTHING
        if device is not None:
            shard = self._shard_on(device)
            begin, end = shard << 32, (shard + 1) << 32
        keys, values, _ = self._export(begin, EVERYTHING, name, end=end)
        return keys, values

    def dump_to_gpu(self, device: str | None = None, name: str | None = None) -> NoReturn:
        """Always raises. On a GPU, lookups give values there; dump_to_cpu copies all."""
        raise tf.errors.FailedPreconditionError(
            None,
            None,
            f"dump_to_gpu: expected a table on a GPU, got one on {', '.join(self._devices)}; "
            "use dump_to_cpu",
        )
