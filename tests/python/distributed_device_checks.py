"""Checks run by the two ranks of test_devices_distributed.py: parts and arrays on emu:0.

Every call is made on a table with its parts on the device and on one on the CPU: the same bits. The
program runs once per rank.
"""

import datetime
import functools
import json
import os
import pathlib
import sys
import traceback

import numpy as np
import torch
import torch.distributed as dist
from oracle import refused

import tensorhash
from tensorhash import _core
from tensorhash.distributed import DistributedHashMap, exchange, load_hash_map
from tensorhash.distributed.messages import as_bytes

DEVICE = "emu:0"
PATIENCE = datetime.timedelta(seconds=100)
RANKS = 2


def on_device(array, device=DEVICE):
    return _core.Tensor.wrap(array).to(device)


def facts(array):
    """(dtype, shape, bytes) of a result, wherever it is."""
    tensor = _core.Tensor.wrap(array).cpu()
    return tensor.dtype, tensor.shape, as_bytes(tensor).numpy().tobytes()


def same(got, wanted, device=None):
    """Equal bits, and on this device if one is given. A result is an array or a tuple."""
    several = got if isinstance(got, tuple) else (got,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other in zip(several, wanted, strict=True):
        if device is not None:
            assert one.device == device, one.device
        assert facts(one) == facts(other), (facts(one), facts(other))


class Pair:
    """A table with its parts on a device, and one on the CPU that gets the same calls."""

    def __init__(self, group, key, **columns):
        self.there = DistributedHashMap(group, 0, *key, device=DEVICE, **columns)
        self.here = DistributedHashMap(None, 0, *key, **columns)
        assert self.there.local.device == DEVICE

    def call(self, verb, *arguments, home=None, **options):
        """Makes a call on both; the first one's arrays are on `home`, and so are its results."""
        arrays = arguments if home is None else moved(arguments, home)
        got = getattr(self.there, verb)(*arrays, **options)
        same(got, getattr(self.here, verb)(*arguments, **options), home)
        return got

    def compare(self):
        """The same entries on every rank, at the same indices."""
        self.there.validate()
        assert self.there.size() == self.here.size()
        assert self.there.local_size() == self.here.local_size()
        same(self.there.keys(), self.here.keys())
        (keys, values), (others, wanted) = self.there.items(), self.here.items()
        same(keys, others)
        same(values, wanted)


def moved(argument, home):
    """The arrays in an argument on a device; other things as they are."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(moved(one, home) for one in argument)
    if isinstance(argument, (np.ndarray, torch.Tensor)):
        return on_device(argument, home)
    return argument


KEYS = {
    "int64": (("int64", ()), lambda rng, rows: rng.integers(0, 80, rows) << 32),
    "int32x3": (
        ("int32", (3,)),
        lambda rng, rows: rng.integers(-2, 2, (rows, 3)).astype(np.int32),
    ),
    "float64": (
        ("float64", ()),
        lambda rng, rows: rng.choice([0.0, -0.0, np.nan, -np.nan, 1.5, -7.0, np.inf], rows),
    ),
}
COLUMNS = {
    "value_dtypes": ["float32", "int64", "bool", "bfloat16"],
    "value_element_shapes": [(3,), (), (), (5,)],
}
REDUCTIONS = (
    ("sum", "sum", "any", "sum"),
    ("prod", "count", "all", "max"),
    ("min", "max", "last", "first"),
    ("last", "min", "first", "min"),
)


def values_of(rng, rows):
    return [
        rng.normal(size=(rows, 3)).astype(np.float32),
        rng.integers(-(2**62), 2**62, rows),
        rng.random(rows) < 0.5,
        torch.from_numpy(rng.normal(size=(rows, 5))).to(torch.bfloat16),
    ]


def check_random_programs_have_the_bits_of_the_cpu(group, rank, folder):
    defaults = [1.5, 7, True, -2.0]
    verbs = ["insert", "insert_or_assign", "accumulate", "activate", "find", "erase", "get"]
    for kind, (key, draw) in KEYS.items():
        pair, largest = Pair(group, key, **COLUMNS), 0
        for step in range(21):
            rng = np.random.default_rng([step, rank])
            rows = 0 if rng.random() < 0.15 else int(rng.integers(1, 60))
            keys, values = draw(rng, rows), values_of(rng, rows)
            # Each rank's arrays are where they are, whatever the others do.
            home = [DEVICE, None, DEVICE, "emu:1"][(step + 2 * rank) % 4]
            verb = verbs[step % len(verbs)]
            if verb in ("insert", "insert_or_assign"):
                pair.call(verb, keys, values, home=home)
            elif verb == "accumulate":
                how = list(REDUCTIONS[step // len(verbs) % len(REDUCTIONS)])
                pair.call(verb, keys, values, how, home=home)
            elif verb == "get":
                pair.call(verb, keys, home=home, default=defaults)
            else:
                pair.call(verb, keys, home=home)
            pair.call("contains", keys, home=home)
            pair.call("owner", keys, home=home)
            largest = max(largest, pair.there.size())
        assert largest > 4, kind
        pair.compare()
        pair.there.clear()
        pair.here.clear()
        pair.compare()


def check_every_reduction_has_the_bits_of_the_cpu(group, rank, folder):
    for how in REDUCTIONS:
        pair = Pair(group, KEYS["int64"][0], **COLUMNS)
        for step, most in enumerate((15, 4000)):  # many equal keys travel joined, few one by one
            rng = np.random.default_rng([rank, step])
            keys = rng.integers(0, most, 200)
            pair.call("accumulate", keys, values_of(rng, 200), list(how), home=DEVICE)
        pair.compare()


OPTIMIZERS = (
    tensorhash.optim.SGD(lr=0.1, momentum=0.9),
    tensorhash.optim.Adagrad(lr=0.1),
    tensorhash.optim.RowWiseAdagrad(lr=0.1),
    tensorhash.optim.Adam(lr=0.01, weight_decay=0.1),
    tensorhash.optim.AdamW(lr=0.01),
)


def check_updates_have_the_bits_of_the_cpu(group, rank, folder):
    for number, optimizer in enumerate(OPTIMIZERS):
        pair = Pair(group, ("int64", ()), **optimizer.columns("float32", (3,)))
        pair.call("activate", np.arange(0, 80, 2), home=DEVICE)
        for step, (missing, duplicates) in enumerate(
            [("skip", "in_order"), ("insert", "sum"), ("insert", "in_order"), ("error", "sum")]
        ):
            rng = np.random.default_rng([number, step, rank])
            keys = rng.integers(0, 90, 60) if missing != "error" else rng.integers(0, 40, 60) * 2
            gradients = rng.normal(size=(60, 3)).astype(np.float32)
            how = {"missing": missing, "duplicates": duplicates}
            if step == 1:
                how["initial"] = 0.5
            pair.call("update", keys, gradients, optimizer, home=DEVICE, **how)
        keys, start = np.arange(200, 210), np.full((10, 3), 0.25, np.float32)
        gradients = np.ones((10, 3), np.float32)
        got = pair.there.update(
            *(on_device(part) for part in (keys, gradients)),
            optimizer,
            missing="insert",
            initial=on_device(start),
        )
        same(got, pair.here.update(keys, gradients, optimizer, missing="insert", initial=start))
        pair.compare()


def check_growth_room_and_checkpoints(group, rank, folder):
    pair = Pair(group, ("int64", ()), **COLUMNS)
    for step in range(3):
        rng = np.random.default_rng([step, rank])
        keys = rng.integers(0, 10**4, 400 << step)
        pair.call("insert", keys, values_of(rng, len(keys)), home=DEVICE)
    pair.call("erase", np.arange(0, 10**4, 3), home=DEVICE)
    pair.there.reserve(20_000)
    assert pair.there.local.capacity() >= 10_000
    pair.compare()
    asked = np.arange(rank, 10**4, 7)
    before = pair.there.find(asked)
    pair.there.shrink_to_fit()
    same(pair.there.find(asked), before)
    pair.there.save(folder / "there")
    pair.here.save(folder / "here")
    for device, name in ((DEVICE, "there"), (DEVICE, "here"), ("cpu:0", "there")):
        again = DistributedHashMap.load(folder / name, group, device=device)
        assert again.local.device == device
        again.validate()
        assert again.size() == pair.here.size()
        same(again.get(asked), pair.here.get(asked))
    same(load_hash_map(folder / "there").get(asked), pair.here.get(asked))


def check_empty_batches_are_ordinary(group, rank, folder):
    pair = Pair(group, ("int32", (3,)), value_dtype="float32", value_element_shape=(4,))
    none, no_values = np.empty((0, 3), np.int32), np.empty((0, 4), np.float32)
    for verb in ("insert", "insert_or_assign", "accumulate"):
        pair.call(verb, none, no_values, home=DEVICE)
    for verb in ("activate", "find", "contains", "erase", "get"):
        pair.call(verb, none, home=DEVICE)
    # Only one rank has rows.
    only = np.arange(30, dtype=np.int32).reshape(10, 3)[: 10 * rank]
    pair.call("activate", only, home=DEVICE)
    pair.call("get", only, home=DEVICE)
    assert pair.there.size() == 10
    pair.compare()


def check_an_error_on_one_rank_changes_nothing_on_any(group, rank, folder):
    pair = Pair(group, ("int64", ()), value_dtype="float32", value_element_shape=(2,))
    keys, values = np.arange(50) * (rank + 1), np.ones((50, 2), np.float32)
    pair.call("insert", keys, values, home=DEVICE)
    table, bad = pair.there, rank == 1
    there, columns = on_device(keys), on_device(values)
    wrong = on_device(keys.astype(np.float32))

    def refuse(kind, word, call):
        error = refused(call, word)
        assert isinstance(error, kind if bad else RuntimeError), error

    refuse(TypeError, "float32", lambda: table.find(wrong if bad else there))
    short = columns if not bad else on_device(values[:49])
    refuse(ValueError, "values", lambda: table.insert(there, short))
    sgd = tensorhash.optim.SGD(lr=0.5)
    absent = on_device(np.where(np.arange(50) > 47, 10**6, keys) if bad else keys)
    refuse(KeyError, "row 48", lambda: table.update(absent, columns, sgd, missing="error"))
    if bad:
        calls = table._calls
        room, calls._make_room = calls._make_room, functools.partial(fail, MemoryError("planted"))
    fresh = on_device(np.arange(1000, 1050))
    refuse(MemoryError, "planted", lambda: table.insert(fresh, columns))
    if bad:
        calls._make_room = room
    pair.compare()


def fail(error, *_):
    raise error


def check_ranks_may_keep_their_parts_on_different_devices(group, rank, folder):
    mine = DEVICE if rank == 0 else "cpu:0"
    shape = 0, "int64", (), "float32", ()
    if group is not None:
        # Only some of the ranks could send from their devices.
        refused(lambda: DistributedHashMap(group, *shape, device=mine), "same calls", "over nccl")
    table, cpu = (DistributedHashMap(None, *shape, device=one) for one in (mine, "cpu:0"))
    keys, values = np.arange(90) - 30 * rank, np.arange(90, dtype=np.float32)
    for verb in ("insert", "accumulate"):
        same(
            getattr(table, verb)(on_device(keys), on_device(values)),
            getattr(cpu, verb)(keys, values),
        )
    same(table.get(on_device(keys)), cpu.get(keys), DEVICE)
    table.validate()


CHECKS = {name: one for name, one in globals().items() if name.startswith("check_")}


class SecondGroup:
    """A group that claims to be nccl's. It notes the rows that it sends.

    torch knows no emulated device, so rows wait in torch's CPU memory to be sent.
    """

    def __init__(self):
        self.sent = 0
        self.group = dist.new_group(list(range(RANKS)), backend="gloo", timeout=PATIENCE)
        self._config, dist.get_backend_config = dist.get_backend_config, self._config_of
        self._send, dist.all_to_all_single = dist.all_to_all_single, self._send_rows
        self._sends_from = exchange.Exchange.sends_from
        exchange.Exchange.sends_from = lambda one, device: self._place(one, device)

    def _config_of(self, group):
        return "cuda:nccl" if group is self.group else self._config(group)

    def _send_rows(self, *arguments, group, **options):
        self.sent += group is self.group
        return self._send(*arguments, group=group, **options)

    def _place(self, one, device):
        words = self._sends_from(one, device.replace("emu", "cuda"))
        if words:
            one._device = torch.device("cpu")
        return words


def run(name, action):
    """The trace of a check that failed, or an empty text."""
    try:
        action()
        return {name: ""}
    except Exception:
        return {name: traceback.format_exc()}


def main(rank, folder):
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=PATIENCE)
    second = SecondGroup()
    report = {}
    for way, group in (("gloo", None), ("second group", second.group)):
        place = folder / way
        place.mkdir(exist_ok=True)
        for name, check in CHECKS.items():
            before = second.sent
            report |= run(f"{name}-{way}", functools.partial(check, group, rank, place))
            if (second.sent > before) != (group is not None) and "different" not in name:
                report[f"{name}-{way}"] += f"{second.sent - before} transfers over the second group"
            dist.barrier()
    (folder / f"report-{rank}.json").write_text(json.dumps(report))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
