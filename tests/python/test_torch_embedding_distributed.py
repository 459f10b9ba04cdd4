"""DistributedHashEmbedding over real processes: the rows of one rank, restarts and checkpoints."""

import copy
import os
import pathlib
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from in_full import only_in_full  # noqa: E402

from tensorhash.distributed import load_hash_map  # noqa: E402
from tensorhash.torch import DistributedHashEmbedding, HashEmbedding  # noqa: E402
from tensorhash.torch.embedding.string_keys import StringKeys  # noqa: E402

pytestmark = pytest.mark.xdist_group("distributed")

PROGRAM = pathlib.Path(__file__).with_name("torch_embedding_ranks.py")
ENVIRONMENT = {
    "TENSORHASH_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    # Else ranks that start again may read the addresses of those that died.
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}
STEPS = 14
# Part of the checkpoint format.
RECORDED = {
    "a": [3405396810240292928, -7907458901979511183],
    "b": [8453121595177857668, 8422671457685625818],
}


def run(folder, ranks, *arguments, restarts=0):
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr=127.0.0.1", f"--nproc-per-node={ranks}", f"--max-restarts={restarts}"]
    done = subprocess.run(
        [*command, str(PROGRAM), str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **ENVIRONMENT},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    ends = [torch.load(folder / f"end-{rank}.pt", weights_only=True) for rank in range(ranks)]
    rows = {}
    for tables, _, _ in ends:
        for keys, values in tables:
            for at, key in enumerate(keys.tolist()):
                key = key if isinstance(key, int) else tuple(key)  # a pair for strings
                assert key not in rows
                rows[key] = torch.cat([column[at].double().reshape(-1) for column in values])
    return rows, ends[0][1], ends[0][2]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, run(folder, 2, STEPS)


def test_two_ranks_train_the_rows_of_one(undisturbed, tmp_path):
    rows, dense, _ = undisturbed[1]
    alone, dense_alone, _ = run(tmp_path, 1, STEPS)
    assert rows.keys() == alone.keys()
    assert 0 not in rows
    assert sum(isinstance(key, int) for key in rows) > 40
    assert sum(isinstance(key, tuple) for key in rows) > 25
    for key, row in rows.items():
        torch.testing.assert_close(row, alone[key], rtol=1e-9, atol=1e-9)
    for name, value in dense.items():
        torch.testing.assert_close(value, dense_alone[name], rtol=1e-9, atol=1e-9)


def test_a_killed_rank_resumes_from_the_checkpoint_and_ends_with_the_same_rows(
    undisturbed, tmp_path
):
    rows, dense, _ = undisturbed[1]
    again, dense_again, first = run(tmp_path, 2, STEPS, 10, restarts=1)
    assert first == 8  # the run started again there
    assert rows.keys() == again.keys()
    assert all(torch.equal(row, again[key]) for key, row in rows.items())
    assert all(torch.equal(value, dense_again[name]) for name, value in dense.items())


def test_a_checkpoint_goes_on_with_another_number_of_ranks(undisturbed, tmp_path):
    folder, (rows, _, _) = undisturbed
    saved = load_hash_map(folder / "rows-12")
    assert saved.size() > 40
    for name in ("dense.pt", "rows-12", "words-12"):
        os.symlink(folder / name, tmp_path / name)
    again, _, first = run(tmp_path, 1, STEPS)
    assert first == 12
    assert rows.keys() == again.keys()
    for key, row in rows.items():
        torch.testing.assert_close(row, again[key], rtol=1e-9, atol=1e-9)


@only_in_full
def test_the_two_towers_print_the_same_auc_on_one_and_two_ranks():
    example = PROGRAM.parents[2] / "examples/05_two_towers.py"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--local-addr=127.0.0.1", "--nproc-per-node=2"]
    printed = [
        subprocess.run(
            [*command, str(example)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **ENVIRONMENT},
        ).stdout
        for command in ([sys.executable], launcher)
    ]
    assert re.fullmatch(r"held-out AUC 0\.\d{6}, by popularity 0\.\d{6}\n", printed[0])
    assert printed[0] == printed[1]


@pytest.fixture
def group():
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_one_rank_gives_the_rows_of_a_hash_embedding(group):
    layer, free = DistributedHashEmbedding(3, seed=1), HashEmbedding(3, seed=1)
    ids = torch.tensor([[5, -5], [2**60, 5]])
    assert torch.equal(layer(ids), free(ids))
    assert torch.equal(layer.eval()(ids), free.eval()(ids))
    assert layer(torch.empty(0, dtype=torch.int64)).shape == (0, 3)
    assert layer.train()(torch.empty(0, dtype=torch.int64)).shape == (0, 3)


def test_strings_have_the_rows_of_a_hash_embedding(group):
    how = {"seed": 1, "strings": True, "padding_idx": ""}
    layer, free = DistributedHashEmbedding(3, **how), HashEmbedding(3, **how)
    parts = [
        ["b", "", "a", "b"],
        [],
        ["c", "\0", "a"],
        np.array(["a", ""]),
        np.array([["a", "ü"], ["", "a"]]),
        [f"w{n}" for n in range(100)],
    ]
    for part in parts:
        assert torch.equal(layer(part), free(part))
    assert len(layer) == len(free) == 105 and layer.ids().shape == (105, 2)
    layer.eval(), free.eval()
    for part in [*parts, ["unseen", "b", ""]]:
        assert torch.equal(layer(part), free(part))
    assert len(layer) == 105
    bare = DistributedHashEmbedding(3, seed=1, strings=True)
    assert bare([""]).all()


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64 - 1, -(2**70)])
def test_any_seed_gives_the_rows_of_a_hash_embedding(group, seed):
    ids = torch.tensor([1, -5])
    assert torch.equal(
        DistributedHashEmbedding(3, seed=seed)(ids), HashEmbedding(3, seed=seed)(ids)
    )


def test_keys_of_strings_are_two_published_hashes():
    keys = StringKeys()
    for remember in (True, True, False):
        got = keys.keys(["a", "b", "a"], remember)
        assert got.tolist() == [RECORDED["a"], RECORDED["b"], RECORDED["a"]]


def test_what_a_distributed_embedding_cannot_do_is_refused(group, tmp_path):
    for name, value in (("capacity", 3), ("max_capacity", 3), ("admit_after", 2)):
        with pytest.raises(ValueError, match=f"{name}: a distributed embedding has no such option"):
            DistributedHashEmbedding(2, **{name: value})
    for options in ({"device": "cuda"}, {"device": torch.device("cuda:1")}):
        with pytest.raises(ValueError, match=r"device: .* on the CPU only, .*pass ids\.cpu\(\)"):
            DistributedHashEmbedding(2, **options)
    with pytest.raises(TypeError, match="padding_idx: expected a str with strings=True, got 0"):
        DistributedHashEmbedding(2, strings=True, padding_idx=0)
    layer = DistributedHashEmbedding(2, seed=1)
    with pytest.raises(RuntimeError, match=r"device: a distributed embedding stays on .*\.cpu\(\)"):
        layer.to("meta")
    layer(torch.tensor([1, 2]))
    with pytest.raises(TypeError, match="a process group cannot be copied"):
        copy.deepcopy(layer)
    with pytest.raises(TypeError, match="a process group cannot be copied"):
        pickle.dumps(layer)
    with pytest.raises(ValueError, match="frozen: each rank has only its own rows"):
        layer.frozen()
    layer.save(tmp_path / "rows")
    other = DistributedHashEmbedding(3, seed=1)
    with pytest.raises(ValueError, match="path: expected a checkpoint with the columns"):
        other.load(tmp_path / "rows")
    state = layer.state_dict()
    state["_extra_state"]["ranks"] = 2
    with pytest.raises((ValueError, RuntimeError), match="expected that of rank 0 of 1"):
        layer.load_state_dict(state)


def test_without_a_group_the_way_out_is_named():
    with pytest.raises(RuntimeError, match="process_group: .*init_process_group"):
        DistributedHashEmbedding(2)
