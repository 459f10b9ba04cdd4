"""Results of public signatures have types: none is missing, and none is `Any`.

The sources are read, not imported, so that no framework is needed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import tensorhash

FOLDER = Path(tensorhash.__file__).parent
PARTS = (
    "", "cli", "coords", "core", "data", "distributed", "geometry", "io", "optim", "tensorflow",
    "tensorflow.optimizers", "torch", "torch.embedding", "view",
)  # fmt: skip
# Methods without a leading underscore are public, and these.
SPOKEN = {"__call__", "__contains__", "__getitem__", "__iter__", "__len__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def module(name: str) -> ast.Module:
    path = FOLDER.joinpath(*name.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(), str(file))


def definition(name: str, where: str) -> tuple[ast.AST, str] | None:
    """(node, module) of a class or function that one of our modules defines or imports."""
    for node in ast.walk(module(where)):
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return node, where
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorhash"):
            for alias in node.names:
                if name == (alias.asname or alias.name) and (node.module, alias.name) != (
                    where,
                    name,
                ):
                    found = source_of(node.module) and definition(alias.name, node.module)
                    if found:
                        return found
    return None


def source_of(name: str) -> bool:
    path = FOLDER.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").exists()


def public_names(where: str) -> list[str]:
    for node in module(where).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError(f"{where} has no __all__")


def aliases_of_any() -> set[str]:
    """Names that mean Any, such as `ArrayLike: TypeAlias = Any`."""
    lines = [node for node in module("tensorhash._types").body if isinstance(node, ast.AnnAssign)]
    return {"Any"} | {line.target.id for line in lines if ast.unparse(line.value) == "Any"}


ANY = aliases_of_any()


def is_any(annotation: ast.expr) -> bool:
    """Whether a type mentions Any; for a Callable only the result counts."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Callable":
        return is_any(annotation.slice.elts[1])
    if isinstance(annotation, ast.Name | ast.Attribute):
        return ast.unparse(annotation).rpartition(".")[2] in ANY
    return any(
        is_any(part) for part in ast.iter_child_nodes(annotation) if isinstance(part, ast.expr)
    )


def faults(name: str, where: str) -> Iterator[str]:
    found = definition(name, where)
    if found is None:
        return  # a module, or a plain value such as int64
    node, home = found
    if isinstance(node, Function):
        yield from faults_of_function(node, home)
    else:
        yield from faults_of_class(node, home)


def faults_of_class(node: ast.ClassDef, home: str) -> Iterator[str]:
    is_tuple = any(ast.unparse(base) in ("NamedTuple", "TypedDict") for base in node.bases)
    for member in node.body:
        label = f"{home}.{node.name}"
        if isinstance(member, Function):
            if not member.name.startswith("_") or member.name in SPOKEN:
                yield from faults_of_function(member, label)
        elif isinstance(member, ast.AnnAssign) and is_tuple:
            if is_any(member.annotation):
                yield f"{label}.{ast.unparse(member.target)}: {ast.unparse(member.annotation)}"
        elif isinstance(member, ast.Assign) and isinstance(member.value, ast.Call):
            # add = _method("add", ...): a method made by a function.
            maker = definition(ast.unparse(member.value.func), home)
            if maker is not None and isinstance(maker[0], Function):
                yield from faults_of_function(maker[0], label)
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        inherited = definition(name, home)
        if inherited is not None and inherited[0] is not node:
            yield from faults_of_class(*inherited)


def faults_of_function(node: Function, home: str) -> Iterator[str]:
    if any(ast.unparse(one).endswith(".setter") for one in node.decorator_list):
        return
    if node.returns is None:
        yield f"{home}.{node.name} has no return annotation"
    elif is_any(node.returns):
        yield f"{home}.{node.name} -> {ast.unparse(node.returns)}"


@pytest.mark.parametrize("part", PARTS)
def test_results_of_public_signatures_have_types(part):
    where = f"tensorhash.{part}".rstrip(".")
    found = {fault for name in public_names(where) for fault in faults(name, where)}
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize(
    "annotation",
    [
        "Any",
        "tuple[Array, Any]",
        "list[typing.Any]",
        "'Array | Any'",
        "ArrayLike",
        "Callable[[int], Any]",
    ],
)
def test_any_is_noticed_anywhere_in_a_type(annotation):
    assert is_any(ast.parse(annotation, mode="eval").body)


def test_types_without_any_are_left_alone():
    for annotation in ("Array", "tuple[Array, ...]", "Callable[[T, Any], T]", "str | None"):
        assert not is_any(ast.parse(annotation, mode="eval").body)


def test_inherited_and_private_bases_are_read():
    names = {fault.rpartition(".")[0] for fault in all_signatures("HashMap")}
    assert {"tensorhash.hash_map.HashMap", "tensorhash._map.MapTable"} <= names
    assert "tensorhash._table.Table" in names


def all_signatures(name: str) -> set[str]:
    """Names of all methods, inherited ones included, that the tests above check."""
    seen: set[str] = set()

    def visit(node: ast.ClassDef, home: str) -> None:
        methods = [one.name for one in node.body if isinstance(one, Function)]
        seen.update(f"{home}.{node.name}.{method}" for method in methods)
        for base in node.bases:
            inherited = definition(ast.unparse(base).partition("[")[0], home)
            if inherited is not None:
                visit(*inherited)

    visit(*definition(name, "tensorhash"))
    return seen
