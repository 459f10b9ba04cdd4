"""Types of arguments, for `type=` of add_argument."""

from __future__ import annotations

import argparse
import math


def positive(text: str) -> float:
    """A finite number greater than 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number greater than 0, got {text!r}")
    return value


def names(text: str) -> list[str]:
    """Names with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise argparse.ArgumentTypeError(f"expected names with commas between them, got {text!r}")
    return parts


def port(text: str) -> int:
    """A port number, 0 for any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def three(text: str) -> tuple[float, float, float]:
    """Three finite numbers with commas between them."""
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError:
        x = y = z = math.nan
    if not all(map(math.isfinite, (x, y, z))):
        raise argparse.ArgumentTypeError(f"expected three numbers as x,y,z, got {text!r}")
    return x, y, z
