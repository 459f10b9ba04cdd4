"""Device names of tables and Tensors. Devices besides the CPU come from plugins."""

from __future__ import annotations

import enum
import os
import sys
from typing import Any, ClassVar

from tensorhash import _core


class Device:
    """A device, given by name or by type and id.

    >>> Device("cpu:0"), str(Device(Device.DeviceType.CUDA, 1))
    (Device("CPU", 0), 'CUDA:1')
    """

    __slots__ = ("_id", "_type")

    class DeviceType(enum.Enum):
        """The types of device."""

        CPU = 1
        CUDA = 2
        SYCL = 14
        EMU = 12  # emulated devices, which only tests load

    CPU: ClassVar[DeviceType] = DeviceType.CPU
    CUDA: ClassVar[DeviceType] = DeviceType.CUDA
    SYCL: ClassVar[DeviceType] = DeviceType.SYCL

    def __init__(
        self,
        device: str | Device.DeviceType | Device | Any = "CPU:0",
        device_id: int | None = None,
    ) -> None:
        if isinstance(device, Device.DeviceType):
            self._type, self._id = device, device_id or 0
            return
        if isinstance(device, Device):
            self._type, self._id = device._type, device._id
            return
        self._type, self._id = _parse(str(device), device_id, "device")

    def get_type(self) -> Device.DeviceType:
        """The type, such as ``Device.DeviceType.CPU``."""
        return self._type

    def get_id(self) -> int:
        """The id: the number after the colon."""
        return self._id

    def to_string(self) -> str:
        """The name, such as ``"CPU:0"``."""
        return f"{self._type.name}:{self._id}"

    def is_cpu(self) -> bool:
        """Whether this is a CPU device."""
        return self._type is Device.DeviceType.CPU

    def is_cuda(self) -> bool:
        """Whether this is a CUDA device."""
        return self._type is Device.DeviceType.CUDA

    def is_available(self) -> bool:
        """Whether this process can use the device."""
        kind = self._type.name.lower()
        return kind != "sycl" and self._id < _core.device_count(kind)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f'Device("{self._type.name}", {self._id})'

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self._type, self._id) == (other._type, other._id)

    def __hash__(self) -> int:
        return hash((self._type, self._id))

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.to_string(),)


def _parse(name: str, device_id: int | None, argument: str) -> tuple[Device.DeviceType, int]:
    kind, _, number = name.strip().partition(":")
    if number and device_id is not None:
        raise ValueError(f"{argument}: {name!r} has a number already, got device_id={device_id}")
    try:
        parsed = Device.DeviceType[kind.upper()], int(number or device_id or 0)
        if parsed[0] is Device.DeviceType.EMU and not _core.device_count("emu"):
            raise KeyError(kind)  # a name for tests only
    except (KeyError, ValueError):
        raise ValueError(f"{argument}: expected 'cpu', 'cpu:0' or 'cuda:0', got {name!r}") from None
    if not 0 <= parsed[1] < 2**31:
        raise ValueError(f"{argument}: expected a number of 0 to 2147483647, got {parsed[1]}")
    return parsed


def named_device(device: Any, argument: str = "device") -> Device:
    """The Device of a name, a Device or a torch.device."""
    if not isinstance(device, (str, Device)) and type(device).__module__ != "torch":
        raise TypeError(f"{argument}: expected a name such as 'cpu', got {type(device).__name__}")
    if isinstance(device, Device):
        return device
    return Device(*_parse(str(device), None, argument))


def usable_device(device: Any, argument: str = "device") -> str:
    """The canonical name, such as "cpu:0". RuntimeError for a device that cannot be used."""
    named = named_device(device, argument)
    if named.get_type() is Device.DeviceType.SYCL:
        raise RuntimeError(f"{argument}: expected 'cpu', got {named}; this build has no SYCL")
    return _core.parse_device(str(named), argument)


def integer_device() -> str:
    """The type of device that an integer id means: "cuda" if there is one, else "cpu"."""
    return "cuda" if _core.device_count("cuda") else "cpu"


def device_report() -> dict[str, str]:
    """Lines of `show_config`: the devices that this process can use, and why there is no CUDA."""
    names = [
        f"{kind}:{number}"
        for kind in ("cpu", "cuda", "emu")
        for number in range(_core.device_count(kind))
    ]
    return {
        "devices": ", ".join(names),
        "cuda": _core.device_status("cuda"),
        "integer ids": f"i is {integer_device()}:i",
    }


def _add_plugin_package() -> None:
    """The package tensorhash-cu13 installs its plugin in a folder of `sys.path`."""
    for place in sys.path:
        folder = os.path.join(place, "tensorhash_cuda")
        if os.path.isdir(folder):
            _core.add_plugin_folder(folder)


_add_plugin_package()
