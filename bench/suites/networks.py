"""A step of a MinkUNet, forward and backward with all kernel maps, beside spconv's layers on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import machine
from harness.case import Case, Sample, Scale
from harness.clock import in_turn, samples
from harness.report import OURS, grouped, markdown, milliseconds, noise, number, ratio
from suites.convolution import DATASETS, VOXELS_OF

TITLE = "Sparse networks"
ABOUT = """
One step of `tensorhash.torch.MinkUNet` (three levels of 32, 64 and 128 channels, 13 convolutions) in float32: a new
SparseTensor, all kernel maps, forward and backward, without an optimizer. spconv's network has the same layers from
its own classes (algorithm `Native`; the others need a GPU) and shares its maps by `indice_key`. "uniform" are distinct
draws from a cube of 96^3 cells. "room" are the surfaces of boxes in a hall at 100,000 voxels. The three datasets stand
for their usual numbers of voxels, as in the section on convolution.
"""
SPCONV = "spconv"
WIDTHS = (32, 64, 128)
VOXELS = 100_000


def cases(scale: Scale) -> list[Case]:
    every = {kind: (make, VOXELS) for kind, make in VOXELS_OF.items()} | DATASETS
    chosen = scale.pick(tuple(every), ("uniform",))
    return [
        Case(
            f"networks/minkunet/{kind}",
            partial(beside_spconv, kind=kind, make=make, count=min(count, scale.most_rows)),
        )
        for kind, (make, count) in every.items()
        if kind in chosen
    ]


def beside_spconv(scale: Scale, kind: str, make: Callable[[int], Any], count: int) -> list[Sample]:
    import torch

    torch.set_num_threads(machine.threads())
    torch.manual_seed(0)
    coords = torch.from_numpy(make(count))
    features = torch.randn(len(coords), 4)
    works = {OURS: our_step(coords, features), SPCONV: spconv_step(coords, features)}
    labels = {"kind": kind, "voxels": len(coords)}
    rounds = {contender: partial(one_step, work) for contender, work in works.items()}
    return samples(in_turn(rounds, scale, scale.rounds(count)), **labels)


def one_step(work: Callable[[], Any], clock: Any) -> None:
    with clock("step"):
        work()


def our_step(coords: Any, features: Any) -> Callable[[], Any]:
    from tensorhash.torch import MinkUNet, SparseTensor

    network = MinkUNet(4, 10, WIDTHS)

    def step() -> None:
        network.zero_grad()
        network(SparseTensor(features, coords)).features.sum().backward()

    return step


def spconv_step(coords: Any, features: Any) -> Callable[[], Any]:
    from peers.spconv_cpu import layers

    network = peer_network()
    shape = (coords[:, 1:].max(dim=0).values + 1).tolist()
    shape = [-(-n // 4) * 4 for n in shape]  # so that every voxel has a coarse one
    batches = int(coords[:, 0].max()) + 1

    def step() -> None:
        network.zero_grad()
        network(layers.SparseConvTensor(features, coords, shape, batches)).features.sum().backward()

    return step


def peer_network() -> Any:
    """The layers of our MinkUNet, from spconv's classes."""
    import torch
    from torch import nn

    from peers.spconv_cpu import layers as spconv

    how = {"bias": False, "algo": spconv.ConvAlgo.Native}

    def block(conv: Any) -> Any:
        return spconv.SparseSequential(conv, nn.BatchNorm1d(conv.out_channels), nn.ReLU())

    def same(ins: int, outs: int, level: int) -> Any:
        return block(spconv.SubMConv3d(ins, outs, 3, indice_key=f"same{level}", **how))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            steps = list(enumerate(itertools.pairwise(WIDTHS)))
            self.start = same(4, WIDTHS[0], 0)
            self.same = nn.ModuleList(
                spconv.SparseSequential(same(w, w, level), same(w, w, level))
                for level, w in enumerate(WIDTHS)
            )
            self.down = nn.ModuleList(
                block(spconv.SparseConv3d(a, b, 2, 2, indice_key=f"down{level}", **how))
                for level, (a, b) in steps
            )
            self.up = nn.ModuleList(
                block(spconv.SparseInverseConv3d(b, a, 2, indice_key=f"down{level}", **how))
                for level, (a, b) in steps
            )
            self.joined = nn.ModuleList(same(2 * a, a, level) for level, (a, _) in steps)
            self.end = nn.Linear(WIDTHS[0], 10)

        def forward(self, x: Any) -> Any:
            levels = [self.same[0](self.start(x))]
            for down, layers in zip(self.down, self.same[1:], strict=True):
                levels.append(layers(down(levels[-1])))
            x = levels.pop()
            for up, joined in zip(reversed(self.up), reversed(self.joined), strict=True):
                skip, x = levels.pop(), up(x)
                x = joined(x.replace_feature(torch.cat([skip.features, x.features], dim=1)))
            return x.replace_feature(self.end(x.features))

    return Network()


def tables(measured: list[Sample]) -> list[str]:
    lines = []
    for labels, row in grouped(measured):
        ours, cells = row[OURS], ["", ""]
        if SPCONV in row:
            cells = [milliseconds(row[SPCONV]), f"{number(ratio(row[SPCONV], ours))}x"]
        where = [labels["kind"], f"{labels['voxels']:,}", milliseconds(ours)]
        lines.append([*where, *cells, noise(row)])
    head = ["voxels", "count", f"{OURS}, ms", "spconv, ms", "spconv's time", "spread"]
    return markdown(head, lines, texts=1)
