"""Uses both installed packages, tensorhash and tensorhash-cu13, on a machine without a GPU or with one."""

from __future__ import annotations

import numpy as np

import tensorhash

status = tensorhash.core.cuda.device_count()
if status == 0:
    try:
        tensorhash.HashSet(1, "int64", (), device="cuda")
    except RuntimeError as error:
        expected = "device: tensorhash-cu13 is installed, but "
        assert str(error).startswith(expected), error
        print(f"    tensorhash-cu13 in a clean environment: {error}")
    else:
        raise AssertionError("a table on a device that is not there")
else:
    table = tensorhash.HashSet(4, "int64", (), device="cuda")
    _, inserted = table.insert(np.array([7, -1, 7]))
    assert inserted.tolist() == [True, True, False], inserted
    print(f"    tensorhash-cu13 in a clean environment: {table!r}")
