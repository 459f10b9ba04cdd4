"""Open3D's `core.cuda`: the CUDA devices of the plugin, none without it."""

from __future__ import annotations

from tensorhash import _core
from tensorhash._device import Device, named_device


def device_count() -> int:
    """The number of CUDA devices for tables; 0 without the plugin or without a driver."""
    return _core.device_count("cuda")


def is_available() -> bool:
    """Whether there is a CUDA device for tables."""
    return device_count() > 0


def get_available_devices() -> list[Device]:
    """The CUDA devices for tables."""
    return [Device(Device.DeviceType.CUDA, number) for number in range(device_count())]


def synchronize(device: Device | str | None = None) -> None:
    """Waits for the work of this thread on a device, or on all of them."""
    for one in get_available_devices() if device is None else [named_device(device)]:
        if not one.is_cpu():
            _core.synchronize(str(one))


def release_cache() -> None:
    """Gives freed memory that the plugin keeps for later allocations back to the driver."""
    for one in get_available_devices():
        _core.release_cache(str(one))
