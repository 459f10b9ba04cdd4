"""Where a free function runs, and where its results go."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash import _core
from tensorhash._device import usable_device
from tensorhash._frameworks import Framework
from tensorhash._types import Array, DeviceLike

HOST = "cpu:0"


def device_of(rows: Any) -> str:
    """The name of the device of an array for the core."""
    return rows.device if isinstance(rows, _core.Tensor) else HOST


def require_host(rows: Any, argument: str) -> None:
    """RuntimeError for an array on a device, in a function that runs on the CPU only."""
    if device_of(rows) != HOST:
        raise RuntimeError(
            f"{argument}: expected memory of the CPU, where this call runs, got memory of "
            f'"{device_of(rows)}"; copy it with .cpu()'
        )


class Place:
    """The device of one call. Results go to the device and framework of the `home` array.

    A call runs where its arrays are, unless `device` is given. Arrays of the CPU are copied to the
    device; arrays of another device are a RuntimeError.
    """

    def __init__(self, device: DeviceLike, source: Framework, home: Any, *others: Any) -> None:
        self._source = source
        self._home = device_of(home)
        if device is None:
            devices = map(device_of, (home, *others))
            self.device = next((name for name in devices if name != HOST), HOST)
        else:
            self.device = usable_device(device)
        self._is_plain = self.device == HOST == self._home

    def __reduce__(self) -> tuple[Any, ...]:
        """On the CPU: the other process may have no such device."""
        return Place, ("cpu", self._source, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Place:
        return self

    def take(self, rows: Any, argument: str) -> Any:
        """The array on the device of the call; None stays None."""
        if rows is None or (self._is_plain and device_of(rows) == HOST):
            return rows
        self.require(rows, argument)
        tensor = rows if isinstance(rows, _core.Tensor) else _core.Tensor.wrap(rows, argument)
        return tensor.to(self.device)

    def require(self, rows: Any, argument: str) -> None:
        """RuntimeError for an array of another device. None is allowed."""
        if rows is not None and device_of(rows) not in (HOST, self.device):
            wanted = "the CPU" if self.device == HOST else f'the CPU or of "{self.device}"'
            raise RuntimeError(
                f"{argument}: expected memory of {wanted}, where this call runs, got memory of "
                f'"{device_of(rows)}"; copy it with .cpu()'
            )

    def put(self, array: Any, argument: str) -> Any:
        """A NumPy array for a call on the device: itself, or a tensor there."""
        if self.device == HOST:
            return array
        return _core.Tensor.wrap(np.ascontiguousarray(array), argument).to(self.device)

    def bring(self, made: _core.KernelMap) -> _core.KernelMap:
        """A kernel map with its arrays where the caller's arrays are."""
        if made.in_maps.device == self._home:
            return made
        return _core.kernel_map_from_parts(
            made.in_maps.to(self._home),
            made.out_maps.to(self._home),
            made.offsets.to(self._home),
            made.num_in,
            made.num_out,
            made.identity_map_index,
            made.strategy,
            made.coarse_probes,
            made.fine_probes,
        )

    def give(self, tensor: _core.Tensor) -> Array:
        """A result as an array of the caller's framework, where the caller's arrays are."""
        return self._source.give(tensor if self._is_plain else tensor.to(self._home))
