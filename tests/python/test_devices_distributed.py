"""A distributed table on two ranks with parts and arrays on emulated devices: the CPU's bits.

Rows go over gloo, and over a second group that stands in for nccl.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

import distributed_device_checks  # noqa: E402
from test_devices import EMULATED, needs_plugins  # noqa: E402

# One process of pytest-xdist runs them all, because starting the ranks takes longest.
pytestmark = [needs_plugins, pytest.mark.xdist_group("distributed_devices")]

ENVIRONMENT = {
    "TENSORHASH_PLUGINS": str(EMULATED),
    "TENSORHASH_NUM_THREADS": "2",
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Starts both ranks once, and runs every check in them."""
    folder = tmp_path_factory.mktemp("ranks")
    program = pathlib.Path(distributed_device_checks.__file__)
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )
        for rank in range(distributed_device_checks.RANKS)
    ]
    try:
        said = [rank.communicate(timeout=500)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), "\n".join(said)
    return [json.loads((folder / f"report-{rank}.json").read_text()) for rank in range(len(ranks))]


@pytest.mark.parametrize("way", ["gloo", "second group"])
@pytest.mark.parametrize("check", distributed_device_checks.CHECKS)
def test_two_ranks(reports, check, way):
    for rank, report in enumerate(reports):
        assert report[f"{check}-{way}"] == "", f"rank {rank}: {report[f'{check}-{way}']}"
