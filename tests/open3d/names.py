"""Every public name of open3d.core, one per line; `python names.py` prints the committed list."""

import types

import open3d.core

# Members that Python or pybind11 adds to every class, and pickling, which has several names.
_PLUMBING = ("__init__", "__doc__", "__module__", "__hash__", "__getstate__", "__setstate__")
_PLUMBING += ("__repr__", "__str__")


def _is_public(name):
    return not name.startswith("_")


def _members(owner, prefix):
    for name in filter(_is_public, dir(owner)):
        member = getattr(owner, name)
        yield prefix + name
        if isinstance(member, (types.ModuleType, type)):
            yield from _members(member, f"{prefix}{name}.")


def _operators(owner, prefix):
    for name in vars(owner):
        if name.startswith("__") and name not in _PLUMBING:
            yield prefix + name


def public_names():
    """The names and the operators of Tensor, sorted, as "Tensor.add" or "cuda.device_count"."""
    return sorted([*_members(open3d.core, ""), *_operators(open3d.core.Tensor, "Tensor.")])


if __name__ == "__main__":
    print("\n".join(public_names()))
