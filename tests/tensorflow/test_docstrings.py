"""Every public class of tensorhash.tensorflow has an example, and all examples are true."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import tensorhash.tensorflow as thtf

MODULES = [
    thtf.__name__,
    *(found.name for found in pkgutil.iter_modules(thtf.__path__, "tensorhash.tensorflow.")),
]


def test_public_classes_have_an_example():
    public = [getattr(thtf, name) for name in thtf.__all__]
    classes = [value for value in public if inspect.isclass(value)]
    assert len(classes) == 3
    assert [value.__name__ for value in classes if ">>>" not in value.__doc__] == []


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_are_true(module):
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0
