"""Errors about optional packages that are not installed."""

from __future__ import annotations


def missing(error: ImportError, package: str, module: str) -> ImportError:
    """The import error again, with a message that says what to install."""
    why = "" if error.name == package else f" ({error})"
    return type(error)(
        f"{module} needs {package}, which cannot be imported here{why}; pip install {package}",
        name=error.name,
    )
