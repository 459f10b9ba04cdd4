"""Arrays on devices. Ranks route their batches on the host; answers go back to the keys' device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorhash import _core
from tensorhash._types import Array

Give = Callable[[_core.Tensor], Array]


def on_host(array: Any) -> Any:
    """The array; a copy in host memory if it is on a device. Waits for what has written it."""
    return array.cpu() if isinstance(array, _core.Tensor) else array


def on_host_with(rows: Any, give: Give) -> tuple[Any, Give]:
    """(rows on the host, a `give` that returns results on the device of the rows)."""
    if not isinstance(rows, _core.Tensor) or rows.device.startswith("cpu"):
        return rows, give
    device = rows.device
    return rows.cpu(), lambda tensor: give(tensor.to(device))
