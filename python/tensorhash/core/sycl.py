"""Open3D's `core.sycl`: there is no SYCL back end, so there are no devices."""

from __future__ import annotations

from tensorhash._device import Device


def device_count() -> int:
    """The number of SYCL devices for tables: 0."""
    return 0


def is_available() -> bool:
    """Whether there is a SYCL device for tables: False."""
    return False


def get_available_devices() -> list[Device]:
    """The SYCL devices for tables: none."""
    return []
