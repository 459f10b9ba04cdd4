"""How much of the long loops runs: a part in `make test`, all of it in `make test-release`."""

import os

import pytest

IN_FULL = os.environ.get("TENSORHASH_TEST_IN_FULL") == "1"
only_in_full = pytest.mark.skipif(not IN_FULL, reason="runs in make test-release")


def times(in_full: int, otherwise: int) -> int:
    """How often a loop goes round."""
    return in_full if IN_FULL else otherwise
