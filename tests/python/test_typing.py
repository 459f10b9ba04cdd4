"""Type hints: the installed package has a marker, a correct stub and annotated signatures."""

import ast
import inspect
import pathlib
import pickle
import runpy
import typing

import pytest

import tensorhash
import tensorhash.core as o3c

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(tensorhash.__file__).parent


def test_the_package_is_marked_as_typed():
    assert (FOLDER / "py.typed").exists()


def test_the_stub_of_the_extension_matches_its_module():
    generated = runpy.run_path(str(ROOT / "tools" / "core_stub.py"))["generate"]()
    assert (FOLDER / "_core.pyi").read_text() == generated, "run tools/core_stub.py"
    assert "class HashMap" in generated


def test_bounded_and_other_maps_share_a_private_base():
    from tensorhash._map import MapTable

    assert tensorhash.HashMap.__bases__ == tensorhash.BoundedHashMap.__bases__ == (MapTable,)
    assert issubclass(tensorhash.ShardedHashMap, tensorhash.HashMap)
    assert issubclass(tensorhash.ShardedBoundedHashMap, tensorhash.BoundedHashMap)
    assert not issubclass(tensorhash.ShardedBoundedHashMap, tensorhash.ShardedHashMap)


def test_tables_take_the_array_type_in_brackets():
    import numpy

    table = tensorhash.HashMap[numpy.ndarray](4, "int64", (), "int64", ())
    assert type(table) is tensorhash.HashMap
    assert type(pickle.loads(pickle.dumps(table))) is tensorhash.HashMap


@pytest.mark.parametrize(
    "cls",
    [
        tensorhash.HashMap,
        tensorhash.HashSet,
        tensorhash.BoundedHashMap,
        tensorhash.ShardedHashMap,
        tensorhash.ShardedBoundedHashMap,
        tensorhash.optim.SGD,
        tensorhash.optim.Adagrad,
        tensorhash.optim.Adam,
        tensorhash.optim.AdamW,
        tensorhash.optim.RowWiseAdagrad,
        o3c.HashMap,
        o3c.HashSet,
        o3c.Tensor,
    ],
)
def test_every_public_method_has_hints_and_a_docstring(cls):
    assert cls.__doc__
    for name, member in inspect.getmembers(cls):
        if name.startswith("_"):
            continue
        function = member.fget if isinstance(member, property) else member
        assert inspect.getdoc(function), name
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, name
        for parameter in signature.parameters.values():
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)


@pytest.mark.parametrize("module", [tensorhash, o3c])
def test_public_functions_have_hints_and_docstrings(module):
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.isfunction(member):
            assert inspect.getdoc(member)
            assert "return" in typing.get_type_hints(member) or member.__annotations__


def test_type_checkers_see_the_parts_that_load_on_first_access():
    tree = ast.parse((FOLDER / "__init__.py").read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(checked.test) == "TYPE_CHECKING"
    # `from tensorhash import x as x` makes a name part of a module's interface.
    seen = {name.name for node in checked.body for name in node.names if name.asname == name.name}
    assert seen == {
        "coords",
        "core",
        "distributed",
        "geometry",
        "io",
        "tensorflow",
        "torch",
        "view",
    }
    # Outside of it, a checker would accept any attribute.
    assert not [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"]


def test_all_lists_exactly_the_public_names():
    for module in (tensorhash, o3c):
        for name in module.__all__:
            assert hasattr(module, name), name
    assert tensorhash.__version__.count(".") == 2


def test_the_examples_in_docstrings_are_true():
    import doctest

    import numpy

    modules = (
        tensorhash,
        tensorhash.hash_map,
        tensorhash.hash_set,
        tensorhash.bounded,
        tensorhash.optim,
    )
    for module in modules:
        names = {"np": numpy, "tensorhash": tensorhash}
        failed, tried = doctest.testmod(module, extraglobs=names)
        assert failed == 0
        assert tried > 0
