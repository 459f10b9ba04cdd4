"""Packages that parts of tensorhash need and the rest does not."""

from __future__ import annotations


def missing(error: ImportError, package: str, module: str) -> ImportError:
    """The error of an import that failed, as a sentence that says what to install."""
    why = "" if error.name == package else f" ({error})"
    return type(error)(
        f"{module} needs {package}, which cannot be imported here{why}; pip install {package}",
        name=error.name,
    )
