"""Kernel maps by brute force: a dict of input rows, looked up once per offset and output row."""

import itertools

import numpy as np
from oracle import same

import tensorhash.coords as thc


def offsets_of(size, dilation=None, center=None):
    """int64 [K, axes]; the first axis varies slowest."""
    dilation = dilation or [1] * len(size)
    center = center or [(s - 1) // 2 if s % 2 else 0 for s in size]
    places = itertools.product(*map(range, size))
    return [
        [(p - c) * d for p, c, d in zip(place, center, dilation, strict=True)] for place in places
    ]


def pairs_of(ins, outs, stride, size, dilation=None, center=None):
    """(in_maps, out_maps, offsets) in the contract's order."""
    ins, outs = np.asarray(ins).tolist(), np.asarray(outs).tolist()
    where = {}
    for row, coords in enumerate(ins):
        where.setdefault(tuple(coords), row)
    in_maps, out_maps, offsets = [], [], [0]
    for offset in offsets_of(size, dilation, center):
        for row, (batch, *place) in enumerate(outs):
            sought = (batch, *(p * s + o for p, s, o in zip(place, stride, offset, strict=True)))
            if sought in where:
                in_maps.append(where[sought])
                out_maps.append(row)
        offsets.append(len(in_maps))
    return np.int32(in_maps), np.int32(out_maps), np.int64(offsets)


def check_map(made, expected):
    """The map is exactly the expected one."""
    same(made.in_maps, expected[0])
    same(made.out_maps, expected[1])
    same(made.offsets, expected[2])


def strategies_for(ins, size, dilation=None, center=None):
    """Every path that accepts this kernel and these coordinates."""
    plain = all(d == 1 for d in dilation or [1])
    odd = all(s % 2 for s in size)
    near = len(ins) == 0 or bool(np.ptp(np.asarray(ins, np.int64), axis=0).max() < 256)
    hierarchical = plain and center is None and odd and len(size) == 3
    blocks = plain and near and len(size) <= 3 and max(size) <= 16
    return (
        ["merge", "flat", None, "warpconvnet"]
        + ["hierarchical"] * hierarchical
        + ["blocks"] * blocks
    )


def check_all(ins, outs, stride, size, dilation=None, center=None, **options):
    """Every path gives the map of brute force."""
    expected = pairs_of(ins, outs, stride, size, dilation, center)
    for strategy in strategies_for(ins, size, dilation, center):
        made = thc.generate_kernel_map(
            ins, outs, stride, size, dilation, center, strategy=strategy, **options
        )
        check_map(made, expected)
    return expected


def random_coords(rng, rows, axes, low=-8, high=8, batches=2):
    """Distinct int32 rows, batch first, in random order; possibly fewer than `rows`."""
    coords = rng.integers(low, high, (rows, axes + 1), dtype=np.int32)
    coords[:, 0] = rng.integers(0, batches, rows)
    return rng.permutation(np.unique(coords, axis=0))
