"""The rule that decides which rank owns a key; the core has its hash.

The rule is part of the checkpoint format.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

POLICY: Final = "murmur64-v1"
