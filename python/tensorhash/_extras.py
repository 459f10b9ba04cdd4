"""Packages that only some parts of tensorhash need."""

from __future__ import annotations


def missing(error: ImportError, package: str, module: str) -> ImportError:
    """The error of a failed import, with a message that says what to install."""
    why = "" if error.name == package else f" ({error})"
    return type(error)(
        f"{module} needs {package}, which cannot be imported here{why}; pip install {package}",
        name=error.name,
    )
