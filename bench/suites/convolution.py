"""Sparse convolution beside a dense matrix product and spconv's CPU convolution, alone and beside a busy process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from harness import lidar, machine, process
from harness.case import Case, Sample, Scale
from harness.clock import Clock, Round, in_turn, median, samples
from harness.report import OURS, grouped, markdown, milliseconds, noise, number, ratio

TITLE = "Sparse convolution"
ABOUT = """
Submanifold convolutions 3^3 in float32 through `tensorhash.torch`, as many channels out as in, over distinct uniform
voxels in random order: 100,000 draws from a cube of 96^3 cells. `of matmul` is our rate of multiplications divided by
that of torch's dense product of all rows with one matrix, into a result that exists. Each contender runs untimed for
14 ms before each timed call: by then, threads of torch that spin after an operator sleep. "network" is five pairs of
convolution and ReLU without such a pause. "with map" includes our kernel map or spconv's (its `Native` algorithm; the
others need a GPU), also over a room: the sides of 200 boxes in a hall. "step" is that with both gradients, through
autograd, also with as many voxels as scans of three datasets have at the usual voxel sizes: nuScenes and SemanticKITTI
(a real LiDAR scan), ScanNet (the room). "busy" is the forward call beside one process that keeps a processor busy.
"""
CHANNELS = (16, 32, 64, 128)
MATMUL, SPCONV, BUSY = "dense matmul", "spconv", "beside a busy process"
SIDE = 96  # cells of the cube's axes
DRAWS = 100_000
PAUSE = 0.014  # seconds of untimed calls
LAYERS = 5


def cases(scale: Scale) -> list[Case]:
    draws = min(DRAWS, scale.most_rows)
    made = []
    for channels in scale.pick(CHANNELS, CHANNELS[1:2]):
        given = {"channels": channels, "draws": draws}
        made += [
            Case(f"convolution/matmul/{channels}", partial(beside_matmul, **given)),
            *(
                Case(
                    f"convolution/spconv/{kind}/{channels}",
                    partial(beside_spconv, **given, kind=kind),
                )
                for kind in VOXELS_OF
            ),
            Case(f"convolution/busy/{channels}", partial(beside_busy, **given)),
        ]
    sizes = scale.pick(tuple(STEPS), ("uniform",))
    return [
        *made,
        *(
            Case(
                f"convolution/step/{name}",
                partial(steps, channels=STEP_CHANNELS, name=name, most=scale.most_rows),
            )
            for name in sizes
        ),
    ]


def voxels(draws: int) -> np.ndarray:
    """int32 [N, 4], distinct, in random order."""
    random = np.random.default_rng(0)
    cells = np.unique(random.integers(0, SIDE, (draws, 3), dtype=np.int32), axis=0)
    return np.insert(random.permutation(cells), 0, 0, axis=1).astype(np.int32)


def room(count: int) -> np.ndarray:
    """int32 [N, 4], distinct: the sides of a hall and of boxes in it, surface by surface."""
    random = np.random.default_rng(0)
    boxes = [np.array([[0, 0, 0], [140, 110, 40]])]
    for _ in range(200):
        low = random.integers(1, (120, 90, 20))
        boxes.append(np.stack([low, low + random.integers(4, 20, 3)]))
    cells = np.concatenate([sides(*box) for box in boxes])
    _, first = np.unique(cells, axis=0, return_index=True)
    kept = cells[np.sort(first)][:count]
    return np.insert(kept, 0, 0, axis=1).astype(np.int32)


def sides(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The cells of the six sides of a box."""
    axes = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    return cells[((cells == low) | (cells == high)).any(axis=1)]


def scan(count: int) -> np.ndarray:
    """int32 [N, 4], distinct: voxels of 5 cm of real LiDAR scans, several if one is too small.

    From 0 on and within 35 m of the sensor, because spconv's grids have at most 2^31 cells."""
    cells = lidar.voxels(3 * count)
    near = (np.abs(cells[:, 1:3]) < 700).all(axis=1) & (np.abs(cells[:, 3]) < 100)
    kept = cells[near]
    kept = kept[np.argsort(kept[:, 0], kind="stable")][:count]
    kept[:, 1:] -= kept[:, 1:].min(axis=0)
    return kept


VOXELS_OF = {"uniform": voxels, "room": room}
# The voxels of one sample of these datasets, and the data that stand for them.
DATASETS: dict[str, tuple[Callable[[int], np.ndarray], int]] = {
    "nuScenes": (scan, 91_000),
    "SemanticKITTI": (scan, 120_000),
    "ScanNet": (room, 148_000),
}
STEPS = {"uniform": (voxels, DRAWS), **DATASETS}
STEP_CHANNELS = 32


class Layer:
    """Voxels, features and weight of one convolution, and its calls."""

    def __init__(
        self, channels: int, count: int, make: Callable[[int], np.ndarray] = voxels
    ) -> None:
        import torch

        from tensorhash.coords import generate_kernel_map
        from tensorhash.torch import sparse_conv

        torch.set_num_threads(machine.threads())
        torch.manual_seed(0)
        self.coords = torch.from_numpy(make(count))
        self.rows = len(self.coords)
        self.features = torch.randn(self.rows, channels)
        self.gradient = torch.randn(self.rows, channels)
        self.weight = torch.randn(27, channels, channels) / (27 * channels) ** 0.5
        self.make_map: Callable[[], Any] = partial(
            generate_kernel_map, self.coords, self.coords, 1, 3
        )
        self.map = self.make_map()
        self.forward: Callable[[], Any] = partial(sparse_conv, self.features, self.weight, self.map)

    def maps(self) -> tuple[Any, ...]:
        return self.map.in_maps, self.map.out_maps, self.map.offsets

    def input_gradient(self) -> Any:
        import torch

        operator = torch.ops.tensorhash.sparse_conv_input_gradient
        return operator(self.gradient, self.weight, *self.maps(), self.rows)

    def weight_gradient(self) -> Any:
        import torch

        operator = torch.ops.tensorhash.sparse_conv_weight_gradient
        return operator(self.features, self.gradient, *self.maps())

    def network(self) -> Any:
        import torch

        from tensorhash.torch import sparse_conv

        features = self.features
        for _ in range(LAYERS):
            features = torch.relu(sparse_conv(features, self.weight, self.map))
        return features


def after_pause(works: dict[str, Callable[[], Any]]) -> Round:
    """A round of several operations, each after a time of untimed calls."""

    def one_round(clock: Clock) -> None:
        for operation, work in works.items():
            until = time.perf_counter() + PAUSE
            while time.perf_counter() < until:
                work()
            with clock(operation):
                work()

    return one_round


def labelled(part: str, channels: int) -> dict[str, Any]:
    return {"part": part, "channels": channels}


def beside_matmul(scale: Scale, channels: int, draws: int) -> list[Sample]:
    import torch

    layer = Layer(channels, draws)
    out = torch.empty_like(layer.features)
    works = {
        "forward": layer.forward,
        "input gradient": layer.input_gradient,
        "weight gradient": layer.weight_gradient,
        "network": layer.network,
    }
    product = partial(torch.mm, layer.features, layer.weight[0], out=out)
    with torch.no_grad():
        rounds = {OURS: after_pause(works), MATMUL: after_pause({"forward": product})}
        made = samples(in_turn(rounds, scale, scale.rounds(draws)), **labelled("matmul", channels))
    for sample in made:
        pairs = len(layer.map.in_maps)
        times = LAYERS if sample.labels["operation"] == "network" else 1
        rows = layer.rows if sample.contender == MATMUL else pairs * times
        sample.numbers = {"products": rows * channels * channels}
    return made


def beside_spconv(scale: Scale, channels: int, draws: int, kind: str) -> list[Sample]:
    import torch

    from peers.spconv_cpu import layers
    from tensorhash.torch import sparse_conv

    layer = Layer(channels, draws, VOXELS_OF[kind])
    peer = layers.SubMConv3d(channels, channels, 3, bias=False, algo=layers.ConvAlgo.Native)
    shape = (layer.coords[:, 1:].max(dim=0).values + 1).tolist()
    given = layer.features, layer.coords, shape, 1
    works = {
        OURS: lambda: sparse_conv(layer.features, layer.weight, layer.make_map()),
        SPCONV: lambda: peer(layers.SparseConvTensor(*given)),
    }
    with torch.no_grad():
        name = "with map" if kind == "uniform" else "with map, room"
        rounds = {contender: after_pause({name: work}) for contender, work in works.items()}
        labels = labelled("spconv", channels) | {"kind": kind}
        return samples(in_turn(rounds, scale, scale.rounds(draws)), **labels)


def steps(scale: Scale, channels: int, name: str, most: int) -> list[Sample]:
    """Map, forward and both gradients beside spconv's, through autograd."""
    from peers.spconv_cpu import layers
    from tensorhash.torch import sparse_conv

    make, count = STEPS[name]
    layer = Layer(channels, min(count, most), make)
    peer = layers.SubMConv3d(channels, channels, 3, bias=False, algo=layers.ConvAlgo.Native)
    shape = (layer.coords[:, 1:].max(dim=0).values + 1).tolist()
    batches = int(layer.coords[:, 0].max()) + 1
    features, weight = layer.features.requires_grad_(), layer.weight.requires_grad_()

    def ours() -> None:
        sparse_conv(features, weight, layer.make_map()).backward(layer.gradient)

    def theirs() -> None:
        peer(layers.SparseConvTensor(features, layer.coords, shape, batches)).features.backward(
            layer.gradient
        )

    operation = f"step, {layer.rows:,} voxels, {name}"
    works = {OURS: ours, SPCONV: theirs}
    rounds = {name: after_pause({operation: work}) for name, work in works.items()}
    labels = labelled("step", channels) | {"kind": name}
    return samples(in_turn(rounds, scale, scale.rounds(count)), **labels)


@contextmanager
def busy_process() -> Iterator[None]:
    """One process that computes on a processor until the block ends."""
    started = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"], preexec_fn=process.die_with_parent
    )
    try:
        yield
    finally:
        started.kill()
        started.wait()


def beside_busy(scale: Scale, channels: int, draws: int) -> list[Sample]:
    import torch

    layer = Layer(channels, draws)
    made: list[Sample] = []
    rounds = scale.rounds(draws)
    with torch.no_grad():
        half = scale.given(scale.budget / 2)
        alone = in_turn({OURS: after_pause({"busy": layer.forward})}, half, rounds)
        with busy_process():
            busy = in_turn({BUSY: after_pause({"busy": layer.forward})}, half, rounds)
    for times in (alone, busy):
        made += samples(times, **labelled("busy", channels))
    return made


def rate(sample: Sample) -> float:
    """Multiplications per second."""
    return sample.numbers["products"] / median(sample.seconds)


def tables(measured: list[Sample]) -> list[str]:
    products = {
        s.labels["channels"]: s for s in measured if s.contender == MATMUL
    }  # one per number of channels
    lines = []
    for labels, row in grouped([s for s in measured if s.contender != MATMUL]):
        ours, cells = row[OURS], ["", "", ""]
        product = products.get(labels["channels"])
        if product and "products" in ours.numbers:
            cells[0] = f"{rate(ours) / rate(product):.2f}"
        if SPCONV in row:
            cells[1] = f"{number(ratio(row[SPCONV], ours))}x"
        if BUSY in row:
            cells[2] = f"{number(ratio(row[BUSY], ours))}x"
        where = [str(labels["channels"]), labels["operation"], milliseconds(ours)]
        lines.append([*where, *cells, noise(row)])
    lines.sort(key=lambda line: int(line[0]))
    head = [
        "channels",
        "operation",
        f"{OURS}, ms",
        "of matmul",
        "spconv's time",
        "slower",
        "spread",
    ]
    return markdown(head, lines, texts=2)
