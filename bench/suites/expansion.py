"""The memory of an expansion: coordinates that a kernel reaches, and the voxels of generative layers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import process
from harness.case import Case, Sample, Scale
from harness.report import OURS, markdown, number
from suites.kernel_maps import uniform

TITLE = "Expansion"
ABOUT = """
The distinct voxels that a 3^3 kernel reaches: `expand_coords`, and the outputs of a generative and of a generative
transposed convolution with stride 2 (`convolution_map` with its pairs). Inputs are chosen so that about 10^7 voxels
come out. "cube" is a full cube: 27 candidates per output. "sparse" are voxels without neighbours: one candidate per
output. Each call runs in a process of its own. `transient` is its peak memory beyond the memory before the call, less
the output: the voxels, and for a convolution the pairs.
"""
OUTPUTS = 10_000_000
CALLS = ("expand_coords", "generative", "transposed")
VOXELS = ("cube", "sparse")
REACH = 27


def cases(scale: Scale) -> list[Case]:
    outputs = min(OUTPUTS, scale.most_rows)
    return [
        Case(f"expansion/{call}/{kind}", partial(measure, call=call, kind=kind, outputs=outputs))
        for call in scale.pick(CALLS, CALLS[:1])
        for kind in scale.pick(VOXELS, VOXELS[:1])
    ]


def cube(side: int) -> np.ndarray:
    axes = np.unravel_index(np.random.default_rng(0).permutation(side**3), (1, side, side, side))
    return np.column_stack(axes).astype(np.int32)


def voxels(call: str, kind: str, outputs: int) -> np.ndarray:
    """int32 [N, 4], distinct: inputs that give about this many outputs."""
    if kind == "sparse":
        return uniform(outputs // REACH, filled=0.001)
    per_input = 8 if call == "transposed" else 1  # a transposed layer doubles the resolution
    return cube(max(2, round((outputs / per_input) ** (1 / 3)) - 2))


def maker(call: str, coords: np.ndarray) -> Callable[[], Any]:
    import tensorhash.coords as thc

    if call == "expand_coords":
        return lambda: thc.expand_coords(coords, 3)
    how = {"generative": True, "transposed": call == "transposed"}
    return partial(thc.convolution_map, coords, 3, 2 if call == "transposed" else 1, **how)


def arrays_of(made: Any) -> list[np.ndarray]:
    """The arrays of an answer, also inside a kernel map."""
    if isinstance(made, np.ndarray):
        return [made]
    if isinstance(made, tuple):
        return [array for part in made for array in arrays_of(part)]
    names = ("in_maps", "out_maps", "offsets", "out_coords")
    return [
        getattr(made, name) for name in names if isinstance(getattr(made, name, None), np.ndarray)
    ]


def peak(call: str, kind: str, outputs: int) -> dict[str, float]:
    """The numbers of one call; runs in its own process."""
    maker(call, voxels(call, kind, 10_000))()  # threads and modules
    work = maker(call, voxels(call, kind, outputs))
    process.forget_peak()
    before = process.resident()
    start = time.perf_counter()
    made = work()
    seconds = time.perf_counter() - start
    beyond = process.resident("VmHWM") - before
    arrays = arrays_of(made)
    output = sum(array.nbytes for array in arrays)
    rows = max(len(array) for array in arrays if array.ndim == 2)
    return {
        "outputs": rows,
        "output": output,
        "transient": max(0, beyond - output),
        "seconds": seconds,
    }


def measure(scale: Scale, call: str, kind: str, outputs: int) -> list[Sample]:
    numbers = process.call("suites.expansion:peak", call, kind, outputs)
    return [Sample(OURS, {"operation": call, "voxels": kind}, numbers=numbers)]


def tables(measured: list[Sample]) -> list[str]:
    lines = []
    for s in measured:
        have = s.numbers
        cells = [f"{have[name] / 1e6:.0f}" for name in ("output", "transient")]
        of_output = f"{have['transient'] / have['output']:.2f}"
        milliseconds = number(have["seconds"] * 1e3)
        where = [s.labels["operation"], s.labels["voxels"], f"{have['outputs']:.2e}"]
        lines.append([*where, milliseconds, *cells, of_output])
    head = ["operation", "voxels", "outputs", "ms", "output, MB", "transient, MB", "of the output"]
    return markdown(head, lines, texts=2)
