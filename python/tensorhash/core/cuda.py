"""`tensorhash.core.cuda`: this build has no CUDA back end, and says so in Open3D's words."""

from __future__ import annotations

from tensorhash._device import Device


def device_count() -> int:
    """How many CUDA devices tables can live on."""
    return 0


def is_available() -> bool:
    """Whether there is one."""
    return False


def get_available_devices() -> list[Device]:
    """All of them."""
    return []


def synchronize(device: Device | None = None) -> None:
    """Waits for a device: there is none to wait for."""


def release_cache() -> None:
    """Gives cached device memory back: there is none."""
