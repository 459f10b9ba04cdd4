"""The base of the embedding layers: their options, and the lookup of a batch of ids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
import torch

from tensorhash import unique
from tensorhash._arguments import integer
from tensorhash.data import StringIndex
from tensorhash.torch._compiling import uncompiled
from tensorhash.torch.embedding import _ops
from tensorhash.torch.embedding.admission import Admission
from tensorhash.torch.embedding.rows import Counters, First, Init, ParameterRows
from tensorhash.torch.embedding.table_rows import TableRows, limit_norm

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class EmbeddingOptions(TypedDict, total=False):
    """The options that all embedding layers share; `HashEmbedding` describes them."""

    capacity: int | None
    max_capacity: int | None
    eviction: str
    padding_idx: int | str | None
    max_norm: float | None
    norm_type: float
    init: Init
    init_scale: float | None
    oov: Any
    admit_after: int
    admit_probability: float
    strings: bool
    seed: int | None
    dtype: torch.dtype | None
    device: Any


_DEFAULTS = EmbeddingOptions(
    capacity=None,
    max_capacity=None,
    eviction="lru",
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    init="uniform",
    init_scale=None,
    oov=None,
    admit_after=1,
    admit_probability=1.0,
    strings=False,
    seed=None,
    dtype=None,
    device="cpu",
)


class Looked(NamedTuple):
    """Rows, and which of them each id of the batch has; None: row i belongs to id i."""

    rows: torch.Tensor
    place: torch.Tensor | None
    padding: int | None  #: the row of padding, if there is one


class HashLayer(torch.nn.Module):
    """An embedding layer over a hash table. The private base of the public layers."""

    _words: tuple[int, ...] = ()  # the shape of a key
    oov_row: torch.Tensor

    def __init__(self, dim: int, **options: Unpack[EmbeddingOptions]) -> None:
        super().__init__()
        given = _complete(dim, options)
        dtype = given["dtype"] or torch.get_default_dtype()
        scale = given["init_scale"]
        default = 1 / math.sqrt(dim) if given["init"] == "uniform" else 1.0
        seed = given["seed"]
        seed = (
            int(torch.randint(2**62, (), device="cpu"))
            if seed is None
            else integer(seed, "seed", None)
        )
        first = First(dim, dtype, seed, given["init"], default if scale is None else float(scale))
        strings = StringIndex() if given["strings"] else None
        admission = Admission(self._words, given["admit_after"], given["admit_probability"], seed)
        device = str(given["device"])
        shared = self._words, first, admission, strings, device
        self.dim = dim
        self.max_norm: float | None = given["max_norm"]
        self.norm_type: float = given["norm_type"]
        self.padding_idx = given["padding_idx"]
        self.weight: torch.nn.Parameter | None = None
        self._rows: ParameterRows | TableRows
        if given["capacity"] is None:
            self._rows = self._table_rows(given, *shared)
        else:
            self._rows = ParameterRows(given["capacity"], *shared)
            zeros = torch.zeros(given["capacity"], dim, dtype=dtype, device=device)
            self.weight = torch.nn.Parameter(zeros)
        #: The row of ids without one, in eval and while they wait for admission.
        self.register_buffer("oov_row", _oov_row(given["oov"], dim, dtype, device))
        self._padding = self._number_of_padding(strings)

    def _table_rows(self, given: Any, *shared: Any) -> TableRows:
        norm = None if self.max_norm is None else (self.max_norm, self.norm_type)
        return TableRows(given["max_capacity"], given["eviction"], norm, *shared)

    def _number_of_padding(self, strings: StringIndex | None) -> int | None:
        if self.padding_idx is None:
            return None
        if strings is None:
            return _padding_number(self.padding_idx)
        return int(np.asarray(strings.insert([string_of(self.padding_idx)]))[0])

    # The table.

    @property
    def counters(self) -> Counters:
        """Hits, misses, rows added and rows evicted so far."""
        return self._rows.counters

    @property
    def clock(self) -> int:
        """The number that `expire` compares with: it grows with every batch in training."""
        return self._rows.clock if isinstance(self._rows, TableRows) else self._rows.batches

    def __len__(self) -> int:
        """The number of ids with a row."""
        return self._rows.table.size()

    def ids(self) -> torch.Tensor:
        """The ids that have a row; with strings=True their numbers."""
        return self._rows.table.keys()

    def rows(self) -> torch.Tensor:
        """A copy of the rows, in the order of `ids()`."""
        rows = self._rows
        if isinstance(rows, TableRows):
            columns = rows.table.items()[1]
            return columns[0] if isinstance(columns, tuple) else columns
        assert self.weight is not None
        return self.weight.detach()[rows.table.active_buf_indices().to(torch.int64)]

    def expire(self, before: int) -> int:
        """Removes the ids last used before this value of `clock`, and returns their number.

        Needs `max_capacity` and eviction="lru".
        """
        if not isinstance(self._rows, TableRows):
            raise ValueError("expire: a layer with capacity= keeps all ids")
        return self._rows.expire(before)

    # Lookups.

    def _keys(self, ids: Any) -> torch.Tensor:
        """The ids of a batch as int64."""
        strings = self._rows.strings
        if strings is None:
            require_integers(ids)
            self._rows.refuse(ids)
            return ids.long()
        flat, shape = flat_strings(ids)
        numbers = np.asarray(strings.insert(flat) if self.training else strings.find(flat))
        return torch.from_numpy(numbers.reshape(shape)).to(self.oov_row.device)

    def _look_up(self, keys: torch.Tensor, scores: torch.Tensor | None) -> Looked:
        """The rows of ids [N], or [N, words]."""
        if not self.training:
            return Looked(self._evaluate(keys), None, None)
        looked: Looked = self._train(keys, scores)
        return looked

    def _is_padding(self, keys: torch.Tensor) -> torch.Tensor | None:
        """bool [N], or None without padding_idx."""
        if self._padding is None:
            return None
        return (keys if keys.ndim == 1 else keys[:, -1]) == self._padding

    def _evaluate(self, keys: torch.Tensor) -> torch.Tensor:
        number, dims = self._rows.handle, len(self._words)
        if self.weight is None:
            out = _ops.lookup(keys, number, dims, self.oov_row)
        else:
            place = _ops.find(keys, number, dims)
            out = self.weight.detach()[place.clamp(min=0)]
            if self.max_norm is not None:
                out = limit_norm(out, self.max_norm, self.norm_type)
            out = torch.where((place < 0)[:, None], self.oov_row, out)
        padding = self._is_padding(keys)
        if padding is not None:
            out = torch.where(padding[:, None], torch.zeros_like(self.oov_row), out)
        rows: torch.Tensor = out
        return rows

    @uncompiled
    def _train(self, keys: torch.Tensor, scores: torch.Tensor | None) -> Looked:
        self._rows.require_scores(scores)
        padding = self._is_padding(keys)
        keep = None if padding is None or not bool(padding.any()) else ~padding
        real = keys if keep is None else keys[keep]
        wanted: Any = unique(real.detach().contiguous(), return_inverse=True, return_counts=True)
        ids, inverse, counts = wanted
        of_ids = _last_scores(scores, keep, inverse, len(ids))
        place = inverse
        if keep is not None:
            place = torch.full((len(keys),), -1, dtype=torch.int64, device=keys.device)
            place[keep] = inverse
        if isinstance(self._rows, ParameterRows):
            assert self.weight is not None
            where = self._rows.train(ids, counts, self.weight)
            return Looked(self._parameter_rows(where, place), None, None)
        rows, alive = self._rows.train(ids, counts, of_ids)
        return self._indexed(ids, rows, alive, place)

    def _indexed(
        self, ids: torch.Tensor, rows: torch.Tensor, alive: torch.Tensor, place: torch.Tensor
    ) -> Looked:
        """Rows for a gradient, followed by those of ids without a row and of padding."""
        assert isinstance(self._rows, TableRows)
        whole = bool(alive.all())
        if not whole:
            ids, rows = ids[alive], rows[alive]
            position = torch.where(alive, alive.cumsum(0) - 1, len(rows))
            place = torch.where(place < 0, -1, position[place.clamp(min=0)])
        leaf = self._rows.leaf(ids, rows) if torch.is_grad_enabled() else rows
        if whole and self.padding_idx is None:
            return Looked(leaf, place, None)
        both = torch.stack([self.oov_row, torch.zeros_like(self.oov_row)])
        last = len(rows) + 1
        return Looked(torch.cat([leaf, both]), torch.where(place < 0, last, place), last)

    def _parameter_rows(self, where: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """[N, dim] from the parameter, with a sparse gradient."""
        assert self.weight is not None
        unknown = place < 0
        row = where[place.clamp(min=0)] if len(where) else torch.full_like(place, -1)
        row = torch.where(unknown, -1, row)
        how = {"max_norm": self.max_norm, "norm_type": self.norm_type, "sparse": True}
        if bool((row >= 0).all()):
            return torch.nn.functional.embedding(row, self.weight, **how)
        out = torch.where(unknown[:, None], torch.zeros_like(self.oov_row), self.oov_row)
        there = row >= 0
        found = torch.nn.functional.embedding(row[there], self.weight, **how)
        return out.index_put((there.nonzero()[:, 0],), found)

    # torch.nn.Module.

    def get_extra_state(self) -> dict[str, object]:
        """The table, for state_dict."""
        return self._rows.state()

    def set_extra_state(self, state: Any) -> None:
        """Takes the table of a state_dict. ValueError, and no change, if it does not fit."""
        self._rows.restore(state)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Refuses what the table cannot follow: another dtype, or a device without a table."""
        probe = fn(torch.empty(0, dtype=self.oov_row.dtype, device=self.oov_row.device))
        rows = self._rows
        if probe.dtype != rows.first.dtype:
            raise TypeError(
                f"dtype: expected {rows.first.dtype}, which this embedding was made with, "
                f"got {probe.dtype}; make a new layer with dtype={probe.dtype}"
            )
        if probe.device != self.oov_row.device:
            rows.move(str(probe.device))
        super()._apply(fn, recurse)
        return self

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        words = [str(self.dim), f"ids={len(self)}"]
        rows = self._rows
        if isinstance(rows, ParameterRows):
            words.append(f"capacity={rows.capacity}")
        elif rows.max_capacity is not None:
            words += [f"max_capacity={rows.max_capacity}", f"eviction={rows.eviction!r}"]
        if self.padding_idx is not None:
            words.append(f"padding_idx={self.padding_idx!r}")
        return ", ".join(words)


def _padding_number(given: Any) -> int:
    """The padding of a layer with integer ids; TypeError or ValueError unless int64 holds it."""
    if isinstance(given, str):
        raise TypeError(f"padding_idx: expected an int without strings=True, got {given!r}")
    number = integer(given, "padding_idx", None)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"padding_idx: expected a number that int64 holds, got {number}")
    return number


def string_of(padding: Any) -> str:
    """The padding of a layer with strings; TypeError for anything but a str."""
    if not isinstance(padding, str):
        raise TypeError(f"padding_idx: expected a str with strings=True, got {padding!r}")
    return padding


def require_integers(ids: Any) -> None:
    """TypeError unless ids are a tensor of integers that int64 holds."""
    is_tensor = isinstance(ids, torch.Tensor)
    if not is_tensor or ids.is_floating_point() or ids.is_complex():
        kind = ids.dtype if is_tensor else type(ids).__name__
        raise TypeError(f"ids: expected a torch tensor of integers, got {kind}")
    if ids.dtype == torch.uint64:
        raise TypeError(
            "ids: expected integers that int64 holds, got torch.uint64; "
            "pass ids.view(torch.int64), which keeps different ids different"
        )


def flat_strings(ids: Any) -> tuple[Any, tuple[int, ...]]:
    """(a batch of strings with one axis, the shape of its results); TypeError for a tensor."""
    if isinstance(ids, torch.Tensor):
        raise TypeError("ids: expected strings, because of strings=True, got a torch tensor")
    if isinstance(ids, np.ndarray):
        return ids.reshape(-1), ids.shape
    return ids, (-1,)


def _complete(dim: int, options: EmbeddingOptions) -> Any:
    """All options. TypeError or ValueError for a name or a value that makes no sense."""
    unknown = sorted(options.keys() - _DEFAULTS.keys())
    if unknown:
        raise TypeError(f"{unknown[0]}: no such option; expected one of {', '.join(_DEFAULTS)}")
    given: Any = {**_DEFAULTS, **options}
    if not isinstance(dim, int) or dim < 1:
        raise ValueError(f"dim: expected an int of 1 or more, got {dim!r}")
    if given["capacity"] is not None and given["max_capacity"] is not None:
        raise ValueError(
            "capacity: expected capacity (a parameter for torch.optim) or max_capacity "
            "(a table that evicts), got both"
        )
    init = given["init"]
    if not callable(init) and init not in ("uniform", "normal", "zeros"):
        raise ValueError(
            f'init: expected "uniform", "normal", "zeros" or a function of ids, got {init!r}'
        )
    dtype = given["dtype"]
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a float dtype of torch, got {dtype}")
    if given["max_norm"] is not None and not given["max_norm"] > 0:
        raise ValueError(f"max_norm: expected more than 0, got {given['max_norm']}")
    return given


def _oov_row(oov: Any, dim: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    row = torch.as_tensor(0.0 if oov is None else oov, dtype=dtype, device=device).detach()
    if row.shape not in ((), (dim,)):
        raise ValueError(f"oov: expected a number or {dim} numbers, got shape {tuple(row.shape)}")
    return row.expand(dim).clone()


def _last_scores(
    scores: torch.Tensor | None, keep: torch.Tensor | None, inverse: torch.Tensor, count: int
) -> torch.Tensor | None:
    """Of each distinct id, the score of its last row."""
    if scores is None:
        return None
    if not isinstance(scores, torch.Tensor) or scores.is_floating_point():
        raise TypeError("scores: expected a torch tensor of int64, one per id")
    flat = scores.reshape(-1).long()
    expected = len(inverse) if keep is None else len(keep)
    if len(flat) != expected:
        raise ValueError(f"scores: expected {expected}, one per id, got {len(flat)}")
    flat = flat if keep is None else flat[keep]
    out = np.zeros(count, np.int64)
    out[inverse.numpy()] = flat.numpy()
    return torch.from_numpy(out)
