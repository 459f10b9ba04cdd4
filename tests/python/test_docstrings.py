"""Every public function and class has a docstring with an example, and all examples are true."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import tensorhash

NEEDS_TORCH = ("torch", "distributed")
# The modules with the public names. tests/tensorflow checks tensorhash.tensorflow.
PUBLIC = ["tensorhash"] + [
    f"tensorhash.{name}"
    for name in ("coords", "core", "data", "geometry", "io", "optim", *NEEDS_TORCH)
]


def part_of(module):
    """The part of the package: coords for tensorhash.coords.ops."""
    return (module + "..").split(".")[1]


MODULES = [
    found.name
    for found in pkgutil.walk_packages(tensorhash.__path__, "tensorhash.")
    if part_of(found.name) not in ("tensorflow", "__main__")
]


def import_or_skip(module):
    if part_of(module) in NEEDS_TORCH or module == "tensorhash.cli.demo.segmentation":
        pytest.importorskip("torch")
    return importlib.import_module(module)


@pytest.mark.parametrize("module", PUBLIC)
def test_public_functions_and_classes_have_an_example(module):
    found = import_or_skip(module)
    public = {name: getattr(found, name) for name in found.__all__}
    without = [
        name
        for name, value in public.items()
        if (inspect.isfunction(value) or inspect.isclass(value))
        and ">>>" not in (value.__doc__ or "")
    ]
    assert public
    assert without == []


def methods_of(found):
    """(name, docstring) of the package's own methods of all public classes."""
    classes = [getattr(found, name) for name in found.__all__]
    return [
        (f"{value.__name__}.{name}", inspect.getdoc(member) or "")
        for value in classes
        if inspect.isclass(value)
        for name, member in inspect.getmembers(value, inspect.isroutine)
        if not name.startswith("_")
        and str(getattr(member, "__module__", None)).startswith("tensorhash")
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_public_methods_have_a_docstring(module):
    found = import_or_skip(module)
    assert [name for name, text in methods_of(found) if not text] == []


# Open3D's Tensor and torch's modules have methods that their users know.
@pytest.mark.parametrize("module", [m for m in PUBLIC if part_of(m) not in ("core", *NEEDS_TORCH)])
def test_public_methods_have_an_example(module):
    found = import_or_skip(module)
    assert [name for name, text in methods_of(found) if ">>>" not in text] == []


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_are_true(module):
    names = {"np": np, "tensorhash": tensorhash}
    failed, _ = doctest.testmod(import_or_skip(module), extraglobs=names)
    assert failed == 0
