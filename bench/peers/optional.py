"""Contenders that a machine may lack: they are left out, and the report says so."""

from __future__ import annotations

import importlib
from typing import Any

_missing: dict[str, None] = {}


def module(name: str) -> Any:
    """The module, or None if it is not installed or does not fit the others."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):  # OSError: a library of another torch
        leave_out(name)
        return None


def leave_out(name: str) -> None:
    """Notes a contender that is no module."""
    _missing[name] = None


def missing() -> list[str]:
    """The contenders that a suite wanted and this machine lacks."""
    return list(_missing)
