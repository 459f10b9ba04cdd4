"""Every #include of the library stays in its layer or goes to a layer that it knows.

The layers are the rows of the table in docs/architecture.md. tests/unit has the folders of src.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Layer(NamedTuple):
    name: str
    files: list[str]  # folders end with "/"
    knows: set[str]  # the names of other layers


def read_layers() -> list[Layer]:
    """The rows of the table below "## Layers"."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition("\n## Layers\n")[2].partition("\n## ")[0]
    layers: list[Layer] = []
    for line in section.splitlines():
        if not line.startswith("| `"):
            continue
        name, files, knows = line.strip("| ").split(" | ")[:3]
        above = {layer.name for layer in layers}
        allowed = above if knows == "all above" else set(re.findall("`(.+?)`", knows))
        assert allowed <= above, f"{name} knows {allowed - above}, which no row above it names"
        assert allowed or knows in ("nothing", "all above"), f"{name} knows: got {knows!r}"
        layers.append(Layer(name.strip("`"), re.findall("`(.+?)`", files), allowed))
    return layers


LAYERS = read_layers()
SOURCES = sorted(
    path
    for top in ("include", "src")
    for path in (ROOT / top).rglob("*")
    if path.suffix in (".h", ".hpp", ".cpp", ".inc", ".cu", ".cuh")
)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def layer_of(file: str) -> Layer:
    """The layer that names the file; otherwise that of the innermost folder around it."""
    entries = [(entry, layer) for layer in LAYERS for entry in layer.files]
    fits = [
        (e, layer) for e, layer in entries if file == e or (e[-1] == "/" and file.startswith(e))
    ]
    assert fits, f"{file} belongs to no layer of docs/architecture.md"
    return max(fits, key=lambda fit: len(fit[0]))[1]


def includes(path: Path) -> list[str]:
    """The files of the library that this file includes."""
    found = []
    for line in re.findall(r"^\s*#\s*include\b(.*)", path.read_text(), re.MULTILINE):
        name = re.match(r'\s*(["<])(.+?)[">]', line)
        assert name, f"{relative(path)}: #include{line}: expected a name in quotes or brackets"
        folders = (path.parent, ROOT / "include", ROOT / "src")
        target = next(
            (folder / name[2] for folder in folders if (folder / name[2]).is_file()), None
        )
        assert target or name[1] == "<", f"{relative(path)} includes {name[2]}, which is not there"
        if target:
            found.append(relative(target.resolve()))
    return found


INCLUDES = [(relative(path), target) for path in SOURCES for target in includes(path)]


def test_the_table_names_each_file_once_and_only_existing_files():
    entries = [entry for layer in LAYERS for entry in layer.files]
    assert len(entries) == len(set(entries))
    for entry in entries:
        assert (ROOT / entry).is_dir() if entry.endswith("/") else (ROOT / entry).is_file(), entry


def test_every_file_of_the_library_has_a_layer():
    for path in SOURCES:
        layer_of(relative(path))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_layer_includes_only_what_it_knows(layer):
    broken = [
        f"{file} includes {target}: {layer.name} does not know {layer_of(target).name}"
        for file, target in INCLUDES
        if layer_of(file) is layer and layer_of(target).name not in layer.knows | {layer.name}
    ]
    assert not broken, "\n".join(broken)


def test_only_the_headers_for_device_code_include_steps():
    public = {
        file
        for file, target in INCLUDES
        if file.startswith("include/")
        and layer_of(file).name != "step"
        and layer_of(target).name == "step"
    }
    allowed = {"coords/packed_key.hpp", "device_view.hpp"}
    assert public <= {f"include/tensorhash/{name}" for name in allowed}


def folders_with_sources(top: Path) -> set[str]:
    return {path.parent.relative_to(top).as_posix() for path in top.rglob("*.cpp")}


def test_unit_tests_lie_in_the_folders_of_src():
    units = folders_with_sources(ROOT / "tests" / "unit")
    sources = folders_with_sources(ROOT / "src") | {"step"}  # steps are headers
    sources.discard("coords")  # only the back end, which the tests of its folders call
    sources.discard("cuda")  # needs a GPU
    # What is built on tables is tested through its public interface; it may have unit tests too.
    optional = {"data", "strings", "conv", "geometry"}
    assert units - sources == set(), "tests/unit has folders that src does not have"
    assert sources - units - optional == set(), "src has folders without a folder in tests/unit"


@pytest.mark.parametrize("verb", ["insert", "find"])
def test_the_walk_of_a_verb_names_at_most_ten_files_and_their_functions(verb):
    page = (ROOT / "docs" / "architecture.md").read_text()
    walk = page.partition(f"\n### `{verb}`, file by file\n")[2].partition("\nAnd back: ")[0]
    steps = re.findall(r"^(\d+)\. `(.+?)`: (.+(?:\n   .+)*)", walk, re.MULTILINE)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert 0 < len(steps) <= 10
    for _, file, what in steps:
        code = (ROOT / file).read_text()
        named = re.findall(r"`([\w:]+)`", what)
        assert named, f"{file}: the walk names none of its functions"
        missing = [name for name in named if name.rpartition("::")[2] + "(" not in code]
        assert not missing, f"{file} does not have {missing}"


@pytest.mark.parametrize("name", ["layers", "lookup"])
def test_the_pictures_are_drawn_from_this_table(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools" / "docs")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import draw_pictures

    drawn = getattr(draw_pictures, name)()
    assert drawn == (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(), (
        "run tools/docs/draw_pictures.py"
    )
