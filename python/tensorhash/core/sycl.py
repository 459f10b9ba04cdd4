"""`tensorhash.core.sycl`: there is no SYCL back end, and scripts that ask are told so."""

from __future__ import annotations

from tensorhash._device import Device


def device_count() -> int:
    """How many SYCL devices tables can live on."""
    return 0


def is_available() -> bool:
    """Whether there is one."""
    return False


def get_available_devices() -> list[Device]:
    """All of them."""
    return []
