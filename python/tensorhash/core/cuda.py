"""Open3D's `core.cuda`: this build has no CUDA back end, so there are no devices."""

from __future__ import annotations

from tensorhash._device import Device


def device_count() -> int:
    """The number of CUDA devices for tables: 0."""
    return 0


def is_available() -> bool:
    """Whether there is a CUDA device for tables: False."""
    return False


def get_available_devices() -> list[Device]:
    """The CUDA devices for tables: none."""
    return []


def synchronize(device: Device | None = None) -> None:
    """Waits for a device. Does nothing, because there is none."""


def release_cache() -> None:
    """Frees cached device memory. Does nothing, because there is none."""
