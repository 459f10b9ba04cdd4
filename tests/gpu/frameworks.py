"""Arrays of real frameworks on a device. The tests without a GPU use fake ones instead.

usage: frameworks.py DEVICE         runs every check in a process of its own; prints rows for report.py
       frameworks.py DEVICE NAME    runs one check

A framework that is not installed, or has no GPU here, gets a row that says so. On cpu:0 the checks
run without a GPU: that tests this program.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
TENSORFLOW = ROOT / ".venv-tensorflow/bin/python"  # TensorFlow has an environment of its own
NOT_RUN = 3  # the exit code of a check that cannot run


class NotRun(Exception):
    """Why a check cannot run here."""


def module(name: str) -> Any:
    if importlib.util.find_spec(name) is None:
        raise NotRun(f"{name} is not installed")
    return importlib.import_module(name)


def is_cpu(device: str) -> bool:
    return device.startswith("cpu")


def same_entries(here: Any, there: Any) -> None:
    listed = ((*table.items(), table.active_buf_indices()) for table in (here, there))
    for one, other in zip(*listed, strict=True):
        np.testing.assert_array_equal(one, other)


def compare(device: str, make: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
    """All verbs with arrays of a framework, which `make` makes on the device, against NumPy's."""
    import tensorhash

    rng = np.random.default_rng(1)
    keys = rng.integers(-50, 50, 300).astype("int32")
    values = rng.normal(size=(300, 3)).astype("float32")
    shape = 0, "int32", (), "float32", (3,)
    here, there = tensorhash.HashMap(*shape), tensorhash.HashMap(*shape, device=device)
    kind = type(make(keys))

    def same(got: Any, want: Any) -> None:
        got, want = (one if isinstance(one, tuple) else (one,) for one in (got, want))
        for one, other in zip(got, want, strict=True):
            assert type(one) is kind, f"expected {kind.__name__}, got {type(one).__name__}"
            np.testing.assert_array_equal(back(one), other)

    for verb in ("insert", "accumulate", "insert_or_assign"):
        same(getattr(there, verb)(make(keys), make(values)), getattr(here, verb)(keys, values))
    same(there.erase(make(keys[:20])), here.erase(keys[:20]))
    same(there.find(make(keys)), here.find(keys))
    same(there.get(make(keys)), here.get(keys))
    same(tensorhash.unique(make(keys)), tensorhash.unique(keys))
    there.validate()
    same_entries(here, there)


def with_torch(device: str) -> None:
    torch = module("torch")
    import tensorhash
    from tensorhash import core

    if not is_cpu(device) and not torch.cuda.is_available():
        raise NotRun("torch has no CUDA device")
    place = torch.device("cpu" if is_cpu(device) else device)

    def make(array: Any) -> Any:
        return torch.from_numpy(array.copy()).to(place)

    compare(device, make, lambda tensor: tensor.cpu().numpy())
    if not is_cpu(device):  # work of a stream of its own, which begins late
        with torch.cuda.device(place), torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(10**8)
            compare(device, make, lambda tensor: tensor.cpu().numpy())
    # Views share the table's memory.
    table = tensorhash.HashMap(4, torch.int64, (), torch.float32, (), device=device)
    table.insert(torch.tensor([5, 7], device=place), torch.tensor([1.0, 2.0], device=place))
    view = table.value_tensor()
    assert view.device.type == place.type and view.data_ptr() == table.value_tensor().data_ptr()
    view[1] += 10
    assert table.get(torch.tensor([7], device=place)).tolist() == [12]
    shared = core.Tensor([1, 2], device=core.Device(device.upper()))
    assert (torch.from_dlpack(shared) + 1).tolist() == [2, 3]


def with_cupy(device: str) -> None:
    cupy = module("cupy")
    with cupy.cuda.Device(int(device.partition(":")[2])), cupy.cuda.Stream(non_blocking=True):
        compare(device, cupy.asarray, cupy.asnumpy)


def with_jax(device: str) -> None:
    jax = module("jax")
    kind, number = device.partition(":")[::2]
    try:
        place = jax.devices("cpu" if kind == "cpu" else "gpu")[int(number)]
    except (RuntimeError, IndexError) as error:
        raise NotRun(f"jax has no {device}") from error
    compare(device, lambda array: jax.device_put(array, place), np.asarray)


def with_nccl(device: str) -> None:
    """One rank, which sends its rows to itself."""
    torch = module("torch")
    dist = torch.distributed
    if not is_cpu(device) and not (torch.cuda.is_available() and dist.is_nccl_available()):
        raise NotRun("torch has no CUDA device or no nccl")
    from tensorhash.distributed import DistributedHashMap

    backend = "gloo" if is_cpu(device) else "nccl"
    place = torch.device("cpu" if is_cpu(device) else device)
    if not is_cpu(device):
        torch.cuda.set_device(place)
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    rng = np.random.default_rng(2)
    keys, values = rng.integers(-50, 50, 300), rng.normal(size=300).astype("float32")
    shape = 0, "int64", (), "float32", ()
    table, cpu = DistributedHashMap(None, *shape, device), DistributedHashMap(None, *shape)

    def make(array: Any) -> Any:
        return torch.from_numpy(array.copy()).to(place)

    for verb in ("insert", "accumulate", "insert_or_assign"):
        got = getattr(table, verb)(make(keys), make(values))
        for one, other in zip(got, getattr(cpu, verb)(keys, values), strict=True):
            assert one.device.type == place.type
            np.testing.assert_array_equal(one.cpu().numpy(), other)
    np.testing.assert_array_equal(table.get(make(keys)).cpu().numpy(), cpu.get(keys))
    dist.destroy_process_group()


def with_tensorflow(device: str) -> None:
    tf = module("tensorflow")
    kind, number = device.partition(":")[::2]
    where = "CPU" if kind == "cpu" else "GPU"
    if len(tf.config.list_physical_devices(where)) <= int(number):
        raise NotRun(f"tensorflow has no {device}")
    import tensorhash.tensorflow as thtf

    rng = np.random.default_rng(3)
    keys, values = rng.integers(-50, 50, 300), rng.normal(size=(300, 2)).astype("float32")
    here = thtf.HashTable(tf.int64, tf.float32, [-1.0, -2.0])
    there = thtf.HashTable(tf.int64, tf.float32, [-1.0, -2.0], devices=[device])
    with tf.device(f"/{where}:{number}"):
        at = tf.constant(keys), tf.constant(values)
        for table in (here, there):
            table.insert(*at)
            table.remove(at[0][:20])
        got = there.lookup(at[0])
        assert where in got.device, got.device
        np.testing.assert_array_equal(got.numpy(), here.lookup(at[0]).numpy())
        step = tf.function(there.lookup)
        np.testing.assert_array_equal(step(at[0]).numpy(), got.numpy())
    assert int(there.size()) == int(here.size())


def with_two_devices(device: str) -> None:
    """Shards on two devices; rows travel between them."""
    import tensorhash
    from tensorhash import core

    kind = device.partition(":")[0]
    if kind == "cuda" and core.cuda.device_count() < 2:
        raise NotRun("there is one CUDA device")
    names = [f"{kind}:0", f"{kind}:1"]
    rng = np.random.default_rng(4)
    keys, values = rng.integers(-500, 500, 3000), rng.normal(size=3000).astype("float32")
    shape = 0, "int64", (), "float32", ()
    for policy in ("hash", "mod"):
        here = tensorhash.ShardedHashMap(*shape, devices=["cpu:0", "cpu:1"], policy=policy)
        there = tensorhash.ShardedHashMap(*shape, devices=names, policy=policy)
        for verb in ("insert", "accumulate", "insert_or_assign"):
            results = (getattr(table, verb)(keys, values) for table in (here, there))
            for one, other in zip(*results, strict=True):
                np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(there.get(keys), here.get(keys))
        there.validate()
        same_entries(here, there)


CHECKS = {
    "torch": with_torch,
    "CuPy": with_cupy,
    "JAX": with_jax,
    "nccl": with_nccl,
    "TensorFlow": with_tensorflow,
    "two devices": with_two_devices,
}


def outcome(device: str, name: str) -> str:
    python = str(TENSORFLOW if name == "TensorFlow" else sys.executable)
    if not Path(python).exists():
        return "not run: .venv-tensorflow is not there (make test-tensorflow makes it)"
    done = subprocess.run([python, __file__, device, name], capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    last = said[-1].replace("\t", " ") if said else f"exit {done.returncode}"
    if done.returncode == NOT_RUN:
        return f"not run: {last}"
    return "passed" if done.returncode == 0 else f"FAILED: {last}"


def main() -> None:
    device, *wanted = sys.argv[1:]
    if wanted:
        try:
            CHECKS[wanted[0]](device)
        except NotRun as reason:
            print(reason, flush=True)
            sys.exit(NOT_RUN)
        return
    for name in CHECKS:
        if device.startswith("emu") and name != "two devices":
            said = "not run: no framework has arrays on an emulated device"
        else:
            said = outcome(device, name)
        print("check", name, said, sep="\t", flush=True)


if __name__ == "__main__":
    main()
