"""Lookups as operators of torch, which torch.compile and torch.export can trace.

A table is named by a random number, so that a program that was exported in another process finds
no table instead of a wrong one. `embedding_frozen` has its rows as arguments.
"""

from __future__ import annotations

import secrets
import weakref
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from tensorhash.hash_map import HashMap

_LIBRARY = torch.library.Library("tensorhash", "FRAGMENT")
_LIBRARY.define("embedding_lookup(Tensor ids, int table, int key_dims, Tensor oov) -> Tensor")
_LIBRARY.define("embedding_find(Tensor ids, int table, int key_dims) -> Tensor")
_LIBRARY.define("embedding_frozen(Tensor ids, Tensor keys, Tensor rows, Tensor oov) -> Tensor")

#: (ids, number of a table, dimensions of a key, row for others): the rows, [*ids, dim].
lookup = torch.ops.tensorhash.embedding_lookup.default
#: (ids, number of a table, dimensions of a key): int64 row numbers, -1 for others.
find = torch.ops.tensorhash.embedding_find.default
#: (ids, keys [N], rows [N, dim], row for others): the rows, [*ids, dim].
frozen = torch.ops.tensorhash.embedding_frozen.default


class Readable(Protocol):
    """What the operators need of a table."""

    def read(self, ids: torch.Tensor, oov: torch.Tensor) -> torch.Tensor: ...

    def places(self, ids: torch.Tensor) -> torch.Tensor: ...


_tables: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def register(table: Readable) -> int:
    """A new number for a table."""
    number = secrets.randbits(62)
    _tables[number] = table
    return number


def _table(number: int) -> Readable:
    found: Readable | None = _tables.get(number)
    if found is None:
        raise RuntimeError(
            "embedding: this program refers to a table of another process, or to one that is "
            "gone; export the layer's frozen() form, which holds its rows"
        )
    return found


def _outer(ids: torch.Tensor, key_dims: int) -> tuple[list[Any], torch.Tensor]:
    """(shape of the batch, one key per row)."""
    shape = list(ids.shape[: ids.ndim - key_dims])
    return shape, ids.reshape(-1, *ids.shape[ids.ndim - key_dims :])


def _lookup(ids: torch.Tensor, table: int, key_dims: int, oov: torch.Tensor) -> torch.Tensor:
    shape, flat = _outer(ids, key_dims)
    return _table(table).read(flat, oov).view(*shape, oov.shape[0])


def _find(ids: torch.Tensor, table: int, key_dims: int) -> torch.Tensor:
    shape, flat = _outer(ids, key_dims)
    return _table(table).places(flat).view(shape)


def _frozen(
    ids: torch.Tensor, keys: torch.Tensor, rows: torch.Tensor, oov: torch.Tensor
) -> torch.Tensor:
    _, flat = _outer(ids, 0)
    found: Any = _index_of(keys).find(flat.cpu())[0]
    place = found.to(rows.device, torch.int64)
    out = rows.new_empty(len(flat), rows.shape[1])
    known = place >= 0
    out[known] = rows[place[known]]
    out[~known] = oov
    return out.view(*ids.shape, rows.shape[1])


class _Kept:
    """An index, and the version of the keys that it was made of."""

    def __init__(self, keys: torch.Tensor) -> None:
        self.version = _version(keys)
        self.index: HashMap[torch.Tensor] = HashMap(
            len(keys), torch.int64, (), value_dtypes=[], value_element_shapes=[]
        )
        self.index.insert(keys.detach().cpu(), ())


_kept = WeakTensorKeyDictionary()


def _index_of(keys: torch.Tensor) -> HashMap[torch.Tensor]:
    """The rows of these keys, made at their first use."""
    kept: _Kept | None = _kept.get(keys)
    if kept is None or kept.version != _version(keys):
        kept = _Kept(keys)
        _kept[keys] = kept
    return kept.index


def _version(keys: torch.Tensor) -> int:
    """torch counts the writes to a tensor, but not those to inference tensors."""
    return -1 if keys.is_inference() else keys._version


def _lookup_shape(ids: torch.Tensor, table: int, key_dims: int, oov: torch.Tensor) -> torch.Tensor:
    return oov.new_empty(*ids.shape[: ids.ndim - key_dims], oov.shape[0])


def _find_shape(ids: torch.Tensor, table: int, key_dims: int) -> torch.Tensor:
    return ids.new_empty(ids.shape[: ids.ndim - key_dims])


def _frozen_shape(
    ids: torch.Tensor, keys: torch.Tensor, rows: torch.Tensor, oov: torch.Tensor
) -> torch.Tensor:
    return rows.new_empty(*ids.shape, rows.shape[1])


for _name, _run, _shape in (
    ("embedding_lookup", _lookup, _lookup_shape),
    ("embedding_find", _find, _find_shape),
    ("embedding_frozen", _frozen, _frozen_shape),
):
    _LIBRARY.impl(_name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tensorhash::{_name}", _shape, lib=_LIBRARY)


def to_numpy(ids: torch.Tensor) -> Any:
    """Ids in NumPy, on the CPU."""
    return np.asarray(ids.detach().cpu())
