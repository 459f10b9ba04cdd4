"""The op library, loaded when this module is."""

from __future__ import annotations

from tensorhash.tensorflow._build import load

ops = load()
