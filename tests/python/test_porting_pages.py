"""The names that the porting pages offer exist."""

import itertools
import pathlib
import re

import pytest

import tensorhash
from tensorhash import coords

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PORTING = ROOT / "docs/porting"
HEADERS = ROOT / "include/tensorhash/sharded"
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")


def cells_of(page, column):
    """The cells of one column in all tables of a page, without heads."""
    rows = [line for line in (PORTING / page).read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    return [row[column] for row in cells if row[column] not in ("tensorhash", "C++", "Python")]


def is_there(name, homes):
    for home in homes:
        found = home
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return True
    return False


@pytest.mark.parametrize(
    ("page", "column"),
    [
        ("warpconvnet.md", 1),
        ("spconv.md", 1),
        ("minkowskiengine.md", 1),
        ("hierarchicalkv.md", 1),
        ("torch-embeddings.md", 1),
        ("multi-gpu-hash-table.md", 2),
    ],
)
def test_the_python_names_exist(page, column):
    torch = pytest.importorskip("torch")
    homes = (tensorhash, coords, tensorhash.torch)
    # Fields of Voxels and arguments, in sentences that say so.
    keywords = ("index", "inverse", "groups", "padding", "out_coords", "per_sample_weights")
    names = {name for cell in cells_of(page, column) for name in NAME.findall(cell)}
    of_torch = {name for name in names if name.startswith("nn.")}
    assert [name for name in sorted(of_torch) if not is_there(name, (torch,))] == []
    names -= of_torch
    names -= {*keywords, "evicted", "tensorhash.tensorflow.HashTable"}
    names = {name.removeprefix("tensorhash.") for name in names}
    assert len(names) > 8
    assert [name for name in sorted(names) if not is_there(name, homes)] == []


def test_the_cpp_names_exist():
    headers = "".join(path.read_text() for path in HEADERS.glob("*.hpp"))
    names = {name for cell in cells_of("multi-gpu-hash-table.md", 1) for name in NAME.findall(cell)}
    assert len(names) > 10
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", headers)] == []


def formula(page):
    """The code of the page that converts weights."""
    return re.search(r"`(w\.[^`]*reshape\(-1, ins, outs\))`", (PORTING / page).read_text())[1]


def test_converted_weights_have_our_order_of_offsets():
    torch = pytest.importorskip("torch")
    kx, ky, kz, ins, outs = 3, 2, 4, 5, 6
    sizes = {"kx": kx, "ky": ky, "kz": kz, "ins": ins, "outs": outs}
    ours = torch.rand(kx * ky * kz, ins, outs)
    places = coords.kernel_offsets_from_size((kx, ky, kz), (1, 1, 1))[:, 1:]
    places = torch.from_numpy(places - places.min(0))
    spconv = torch.empty(outs, kx, ky, kz, ins)
    for place, matrix in zip(places.tolist(), ours, strict=True):
        spconv[(slice(None), *place)] = matrix.T
    assert torch.equal(eval(formula("spconv.md"), {**sizes, "w": spconv}), ours)
    order = [(x, y, z) for z, y, x in itertools.product(range(kz), range(ky), range(kx))]
    numbers = {tuple(place): number for number, place in enumerate(places.tolist())}
    minkowski = ours[[numbers[place] for place in order]]
    assert torch.equal(eval(formula("minkowskiengine.md"), {**sizes, "w": minkowski}), ours)
