"""One table over real processes under torchrun: each check on 2, 3 and 4 ranks."""

import inspect
import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("torch.distributed")
if not distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

import distributed_checks  # noqa: E402

# One pytest-xdist process runs them all, because starting the ranks takes longest.
pytestmark = pytest.mark.xdist_group("distributed")

RANKS = max(distributed_checks.GROUP_SIZES)
ENVIRONMENT = {"TENSORHASH_NUM_THREADS": "2", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Starts one group and runs every check in it, because starting costs more than checking."""
    folder = tmp_path_factory.mktemp("ranks")
    program = pathlib.Path(distributed_checks.__file__)
    # The host name may not resolve, or may resolve to an outside address.
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--local-addr=127.0.0.1", f"--nproc-per-node={RANKS}"]
    done = subprocess.run(
        [*launcher, str(program), str(folder)],
        capture_output=True,
        text=True,
        timeout=540,
        env={**os.environ, **ENVIRONMENT},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [json.loads((folder / f"report-{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.parametrize("size", distributed_checks.GROUP_SIZES)
@pytest.mark.parametrize("check", distributed_checks.CHECKS)
def test_ranks(reports, check, size):
    for rank, report in enumerate(reports):
        assert report[f"{check}-{size}"] == "", f"rank {rank}: {report[f'{check}-{size}']}"


def test_checkpoints_load_onto_any_number_of_ranks(reports):
    for rank, report in enumerate(reports):
        assert report["across_group_sizes"] == "", f"rank {rank}: {report['across_group_sizes']}"


def test_every_public_method_has_hints_and_a_docstring():
    from tensorhash.distributed import DistributedHashMap

    for name, member in inspect.getmembers(DistributedHashMap):
        if name.startswith("_"):
            continue
        function = member.fget if isinstance(member, property) else member
        assert inspect.getdoc(function), name
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty, name


def test_without_a_group_the_way_out_is_named():
    from tensorhash.distributed import DistributedHashMap

    with pytest.raises(RuntimeError, match="process_group: .*init_process_group"):
        DistributedHashMap(None, 0, "int64", (), "int64", ())
