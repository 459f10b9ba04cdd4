"""The voxels of a network and the kernel maps between them, each made once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tensorhash import _core
from tensorhash.coords import (
    CoordTable,
    KernelMap,
    convolution_map,
    stride_coords,
    unique_coords,
)
from tensorhash.coords.convolution import dense_shape, require_distinct
from tensorhash.torch._compiling import uncompiled

Steps = tuple[int | Fraction, ...]


class Kernel(NamedTuple):
    """How the voxels of a fine and of a coarse grid are joined, one number per axis."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    duplicates: str = "error"


class Site(NamedTuple):
    """One set of voxels."""

    coords: torch.Tensor  # [N, 1 + D]
    stride: Steps  # the length of one step, in units of the finest grid
    shape: tuple[int, ...] | None  # of the dense grid, if it is known


class Made(NamedTuple):
    """What a layer needs: the number of its output voxels, and its kernel map."""

    site: int
    map: KernelMap


class Reduced(NamedTuple):
    """How voxels become fewer under a stride."""

    site: int  # the strided voxels
    rows: torch.Tensor  # int64: the strided voxel of each voxel
    first: torch.Tensor | None  # which voxels these are; None: all


class MapCache:
    """The voxels and kernel maps that the tensors of one network share.

    `len(cache)` is the number of kernel maps that were built. A transposed map is another one
    turned round, so it does not count.

    >>> from tensorhash.torch import SparseConv3d, SparseTensor
    >>> x = SparseTensor(torch.ones(1, 4), torch.tensor([[0, 1, 2, 3]]))
    >>> _ = torch.nn.Sequential(SparseConv3d(4, 4, 3), SparseConv3d(4, 4, 3))(x)
    >>> len(x.maps)
    1
    """

    def __init__(self) -> None:
        self._sites: list[Site] = []
        self._outs: dict[tuple[Any, ...], int] = {}
        self._maps: dict[tuple[Any, ...], KernelMap] = {}
        self._made_by: dict[int, list[tuple[int, Kernel]]] = {}
        self._names: dict[str, tuple[int, int, Kernel]] = {}
        self._unions: dict[tuple[int, int], tuple[int, torch.Tensor]] = {}
        self._reduced: dict[tuple[int, tuple[int, ...], bool], Reduced] = {}
        self._batches: dict[int, int] = {}
        self._tables: dict[int, CoordTable] = {}
        self._built = 0

    def __len__(self) -> int:
        return self._built

    def __repr__(self) -> str:
        return f"MapCache({self._built} kernel maps, {len(self._sites)} sets of voxels)"

    def __getitem__(self, site: int) -> Site:
        return self._sites[site]

    def number_of(
        self, coords: torch.Tensor, stride: Steps, shape: tuple[int, ...] | None = None
    ) -> int:
        """The number of these voxels, which are the same if the tensor is."""
        for number, site in enumerate(self._sites):
            if site.coords is coords and site.stride == stride:
                return number
        self._sites.append(Site(coords, stride, shape))
        return len(self._sites) - 1

    def batch_size(self, site: int, least: int = 0) -> int:
        """One more than the largest batch number of the voxels."""
        if site not in self._batches:
            self._batches[site] = _batch_size(self._sites[site].coords)
        return max(self._batches[site], least)

    def table(self, site: int) -> CoordTable:
        """A table from the voxels to their rows."""
        if site not in self._tables:
            self._tables[site] = CoordTable.from_coords(where_tables_are(self._sites[site].coords))
        return self._tables[site]

    def strided(self, site: int, kernel: Kernel, reached: bool = False) -> Made:
        """The voxels divided by the stride, or all that the kernel reaches, and the map to them."""
        if max(kernel.stride) == 1 and not reached:
            return Made(site, self.between(site, site, kernel))
        how = (site, "reached", *kernel) if reached else (site, "strided", kernel.stride)
        if how not in self._outs:
            word = "reached" if reached else "strided"
            out = self._build(site, kernel, out_sites=word)
            self._outs[how] = out
        self._note(site, self._outs[how], kernel)
        return Made(self._outs[how], self.between(site, self._outs[how], kernel))

    def reduced(self, site: int, stride: tuple[int, ...], repeats: bool) -> Reduced:
        """The voxels divided by the stride. With `repeats`, the first of equal voxels counts.

        Otherwise ValueError if a voxel repeats another.
        """
        key = site, stride, repeats
        if key not in self._reduced:
            before = self._sites[site]
            if not repeats:
                _require_distinct(before.coords)
            coords, rows, first = strided_rows(before.coords, stride, repeats)
            how = (site, "strided", stride)
            if how not in self._outs:
                self._outs[how] = self.number_of(coords, scaled(before.stride, stride))
            self._reduced[key] = Reduced(self._outs[how], rows, first)
        return self._reduced[key]

    def generative(self, site: int, kernel: Kernel, transposed: bool) -> Made:
        """All voxels that a generative convolution makes, and the map to them."""
        how = (site, "generative", transposed, *kernel)
        if how not in self._outs:
            self._outs[how] = self._build(site, kernel, generative=True, transposed=transposed)
        out = self._outs[how]
        if transposed:
            self._note(out, site, kernel)
            return Made(out, self.between(out, site, kernel, turned=True))
        self._note(site, out, kernel)
        return Made(out, self.between(site, out, kernel))

    def to(self, site: int, kernel: Kernel, out: torch.Tensor, transposed: bool) -> Made:
        """The map to given voxels."""
        stride = scaled(self._sites[site].stride, kernel.stride, transposed)
        target = self.number_of(out, stride)
        fine, coarse = (target, site) if transposed else (site, target)
        self._note(fine, coarse, kernel)
        return Made(target, self.between(fine, coarse, kernel, transposed))

    def back(self, site: int, kernel: Kernel) -> Made:
        """The map back to the voxels from which a layer with this stride made these."""
        fine = {n for n, how in self._made_by.get(site, []) if how.stride == kernel.stride}
        if len(fine) != 1:
            raise ValueError(
                f"out_coords: expected the output coordinates of a transposed convolution, "
                f"because {len(fine) or 'no'} sets of voxels led to these by stride {kernel.stride}; "
                f"pass them or set generative=True"
            )
        target = fine.pop()
        return Made(target, self.between(target, site, kernel, turned=True))

    def undone(self, site: int, size: tuple[int, ...], name: str | None) -> Made:
        """The turned map of the layer with that name, or of the one kernel that made the voxels."""
        if name is not None:
            if name not in self._names or self._names[name][1] != site:
                known = sorted(key for key, how in self._names.items() if how[1] == site)
                raise ValueError(
                    f"indice_key: expected the key of a layer that made these voxels "
                    f"({', '.join(map(repr, known)) or 'there is none'}), got {name!r}"
                )
            fine, _, kernel = self._names[name]
        else:
            ways = [way for way in self._made_by.get(site, []) if way[1].size == size]
            if len(ways) != 1:
                raise ValueError(
                    f"indice_key: expected the key of the layer to undo, because "
                    f"{len(ways) or 'no'} layers of kernel size {size} made these voxels"
                )
            fine, kernel = ways[0]
        if kernel.size != size:
            raise ValueError(f"kernel_size: expected {kernel.size}, as of {name!r}, got {size}")
        return Made(fine, self.between(fine, site, kernel, turned=True))

    def name(self, name: str, site: int, made: Made, kernel: Kernel) -> None:
        """Keeps the map of a layer under a name."""
        self._names[name] = site, made.site, kernel

    def between(self, fine: int, coarse: int, kernel: Kernel, turned: bool = False) -> KernelMap:
        """The map from fine to coarse voxels, or turned round."""
        key, other = ((fine, coarse, *kernel, way) for way in (turned, not turned))
        if key in self._maps:
            return self._maps[key]
        # With repeated voxels, a turned map is not that of the turned layer.
        if kernel.duplicates == "error" and other in self._maps:
            self._maps[key] = _turned(self._maps[other])
            return self._maps[key]
        start, end = (coarse, fine) if turned else (fine, coarse)
        given = None if start == end and not turned else self._sites[end].coords
        self._maps[key] = _convolution_map(
            self._sites[start].coords, kernel, out_coords=given, transposed=turned
        )[1]
        self._built += 1
        return self._maps[key]

    def union(self, one: int, other: int) -> tuple[int, torch.Tensor]:
        """(the voxels of both, the row of each voxel of `one`, then of `other`)."""
        if (one, other) not in self._unions:
            coords, rows = _union(self._sites[one].coords, self._sites[other].coords)
            made = self.number_of(coords, self._sites[one].stride, self._sites[one].shape)
            self._unions[one, other] = made, rows
        return self._unions[one, other]

    def _note(self, fine: int, coarse: int, kernel: Kernel) -> None:
        """Remembers how the coarse voxels were made."""
        ways = self._made_by.setdefault(coarse, [])
        if fine != coarse and (fine, kernel) not in ways:
            ways.append((fine, kernel))

    def _build(self, site: int, kernel: Kernel, **how: Any) -> int:
        """Makes the output voxels of a layer and its map; returns the number of the voxels."""
        before = self._sites[site]
        transposed, reached = how.get("transposed", False), how.get("out_sites") == "reached"
        shape = None
        if before.shape and (reached or transposed):
            how["spatial_shape"] = before.shape
            shape = tuple(dense_shape(before.shape, *kernel[:4], transposed))
        elif before.shape and not how.get("generative"):
            shape = tuple(-(-n // s) for n, s in zip(before.shape, kernel.stride, strict=True))
        coords, made = _convolution_map(before.coords, kernel, **how)
        out = self.number_of(coords, scaled(before.stride, kernel.stride, transposed), shape)
        fine, coarse = (out, site) if transposed else (site, out)
        self._maps[(fine, coarse, *kernel, transposed)] = made
        self._built += 1
        return out


def scaled(stride: Steps, by: Sequence[int], divided: bool = False) -> Steps:
    """The stride times `by`, or divided by it."""
    numbers = zip(stride, by, strict=True)
    made = [Fraction(old) / step if divided else Fraction(old) * step for old, step in numbers]
    return tuple(int(step) if step.denominator == 1 else step for step in made)


@contextlib.contextmanager
def _outside_of_tracing() -> Iterator[None]:
    """Voxels are real also in torch.func and in `plan_maps`, where features have no memory."""
    with temporarily_clear_interpreter_stack(), unset_fake_temporarily(), torch.no_grad():
        yield


@uncompiled
def _convolution_map(
    coords: torch.Tensor, kernel: Kernel, out_coords: torch.Tensor | None = None, **how: Any
) -> tuple[torch.Tensor, KernelMap]:
    with _outside_of_tracing():
        rows = where_tables_are(coords)
        given = None if out_coords is None else where_tables_are(out_coords)
        made, _, kernel_map = convolution_map(
            *(rows, kernel.size, kernel.stride, kernel.dilation),
            out_coords=given,
            duplicates=kernel.duplicates,
            padding=kernel.padding,
            **how,
        )
        return (coords if made is rows else torch.as_tensor(made).to(coords.device)), kernel_map


@uncompiled
def strided_rows(
    coords: torch.Tensor, stride: int | Sequence[int], repeats: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """(strided voxels, the one of each voxel, with `repeats` the first of equal voxels)."""
    with _outside_of_tracing():
        voxels, first = where_tables_are(coords), None
        if repeats:
            voxels, first = map(torch.as_tensor, unique_coords(voxels, return_index=True))
        coarse, _ = stride_coords(voxels, stride)
        divisors = torch.ones(voxels.shape[1], dtype=voxels.dtype)
        divisors[1:] = torch.as_tensor(stride)
        cells = torch.div(voxels, divisors.to(voxels.device), rounding_mode="floor")
        rows = torch.as_tensor(CoordTable.from_coords(coarse).search(cells)).long()
        home = coords.device
        first = None if first is None else first.to(home)
        return torch.as_tensor(coarse).to(home), rows.to(home), first


@uncompiled
def _require_distinct(coords: torch.Tensor) -> None:
    with _outside_of_tracing():
        require_distinct(coords.cpu().numpy(), "coords")


@uncompiled
def _turned(kernel_map: KernelMap) -> KernelMap:
    with _outside_of_tracing():
        return kernel_map.transpose()


@uncompiled
def _union(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with _outside_of_tracing():
        both = torch.cat([one, other.to(one.device, one.dtype)])
        coords, rows = unique_coords(where_tables_are(both), return_inverse=True)
        return torch.as_tensor(coords).to(one.device), torch.as_tensor(rows).to(one.device)


@uncompiled
def _batch_size(coords: torch.Tensor) -> int:
    with _outside_of_tracing():
        return int(coords[:, 0].max()) + 1 if len(coords) else 0


def where_tables_are(rows: torch.Tensor) -> torch.Tensor:
    """The rows where tables and kernel maps are made: on their device if it has them, or a copy."""
    kind = rows.device.type
    return rows if kind == "cpu" or _core.device_count(kind) else rows.cpu()
