"""How many rounds long loops run: some in `make test`, all in `make test-release`."""

import os

import pytest

IN_FULL = os.environ.get("TENSORHASH_TEST_IN_FULL") == "1"
only_in_full = pytest.mark.skipif(not IN_FULL, reason="runs in make test-release")


def times(in_full: int, otherwise: int) -> int:
    """The number of rounds of a loop."""
    return in_full if IN_FULL else otherwise
