"""The rows of an embedding: a hash table from ids to where their weights are.

`TableRows` keeps weights and optimizer state in the table, which grows or evicts. `ParameterRows`
numbers the rows of a torch parameter of fixed size, so that torch.optim can train it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tensorhash._frameworks import framework
from tensorhash._types import NumPyArray
from tensorhash.data import StringIndex
from tensorhash.hash_map import HashMap
from tensorhash.torch.embedding import _ops, seeded
from tensorhash.torch.embedding.admission import Admission

Init = str | Callable[[torch.Tensor], torch.Tensor]
_RANDOM = {"uniform": seeded.uniform, "normal": seeded.normal}


@dataclasses.dataclass
class Counters:
    """What happened to the ids of all batches so far, each row counted; padding is not."""

    hits: int = 0  #: ids that had a row
    misses: int = 0  #: ids that had none, before any was added
    added: int = 0  #: rows added
    evictions: int = 0  #: rows evicted


@dataclasses.dataclass
class First:
    """How the first row of an id is made."""

    dim: int
    dtype: torch.dtype
    seed: int
    init: Init
    scale: float

    def rows(self, ids: torch.Tensor, names: NumPyArray) -> torch.Tensor:
        """[N, dim], from the ids, or from names that stand for them."""
        if callable(self.init):
            made = torch.as_tensor(self.init(ids)).detach()
            if made.shape != (len(ids), self.dim):
                raise ValueError(
                    f"init: expected a function that returns shape {(len(ids), self.dim)}, "
                    f"got {tuple(made.shape)}"
                )
            return made.to(ids.device, self.dtype)
        if self.init == "zeros":
            return torch.zeros(len(ids), self.dim, dtype=self.dtype, device=ids.device)
        numbers = _RANDOM[self.init](names, self.seed, self.dim, self.scale)
        return torch.from_numpy(numbers).to(ids.device, self.dtype)


class Rows:
    """What both kinds share: the table's keys, admission, strings, counters and state."""

    table: HashMap[torch.Tensor]

    def __init__(
        self,
        words: tuple[int, ...],
        first: First,
        admission: Admission,
        strings: StringIndex | None,
        device: str,
    ) -> None:
        self.words = words
        self.first = first
        self.admission = admission
        self.strings = strings
        self.device = device
        self.counters = Counters()
        self.batches = 0  #: batches in training so far
        self.handle = _ops.register(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "handle"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.handle = _ops.register(self)

    def places(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [N]: the row of each id, -1 for others."""
        place, found = self.table.find(ids)
        self._count(found)
        return place.to(torch.int64)

    def read(self, ids: torch.Tensor, oov: torch.Tensor) -> torch.Tensor:
        """[N, dim]: the weights of each id, `oov` for others."""
        raise NotImplementedError

    def refuse(self, ids: torch.Tensor) -> None:
        """RuntimeError unless the ids are where the table is."""
        if ids.device.type != self.device.partition(":")[0]:
            raise RuntimeError(
                f"ids: expected a tensor on {self.device}, where this embedding is, "
                f"got one on {ids.device}; {self._way_out()}"
            )

    def move(self, device: str) -> None:
        """Moves the table; RuntimeError if it cannot be there."""
        self.table = self.table.to(device)
        self.device = device

    def require_scores(self, scores: torch.Tensor | None) -> None:
        """ValueError if scores came that nothing would read, or if they are missing."""
        if self._takes_scores != (scores is not None):
            raise ValueError(
                'scores: expected one per id, because this embedding has eviction="score"'
                if self._takes_scores
                else 'scores: only an embedding with max_capacity and eviction="score" takes them'
            )

    @property
    def _takes_scores(self) -> bool:
        return False

    def _way_out(self) -> str:
        return f'pass ids.to("{self.device}"), or make the layer with device="cuda"'

    def _count(self, found: torch.Tensor, counts: torch.Tensor | None = None) -> None:
        hits = int(found.sum() if counts is None else counts[found].sum())
        total = len(found) if counts is None else int(counts.sum())
        self.counters.hits += hits
        self.counters.misses += total - hits

    def _decide(self, ids: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """bool [N]: which of these new ids get a row. Changes nothing."""
        arrays = _ops.to_numpy(ids), _ops.to_numpy(counts)
        return torch.from_numpy(self.admission.decide(*arrays, self.batches)).to(ids.device)

    def _note(self, ids: torch.Tensor, counts: torch.Tensor, admitted: torch.Tensor) -> None:
        """Remembers the sightings of ids that wait."""
        self.admission.note(*map(_ops.to_numpy, (ids, counts, admitted)))
        self.counters.added += int(admitted.sum())

    def _first_rows(self, ids: torch.Tensor) -> torch.Tensor:
        names = _ops.to_numpy(ids)
        if self.strings is not None:
            names = seeded.hash_strings(list(self.strings.decode(names, as_bytes=True)))
        return self.first.rows(ids, names)

    # State.

    def state(self) -> dict[str, Any]:
        """Everything but the weights of a parameter, as numbers and tensors."""
        return {
            "format": 1,
            "table": image(self.table),
            "seen": image(self.admission.seen),
            "strings": None if self.strings is None else _image_of_strings(self.strings),
            "batches": self.batches,
            "seed": self.first.seed,
            "counters": list(dataclasses.astuple(self.counters)),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes a state of `state()`. ValueError, and no change, if it does not fit."""
        if not isinstance(state, dict) or state.get("format") != 1:
            raise ValueError("state_dict: expected the state of an embedding, in format 1")
        table = self._table_of(state["table"])
        strings = state["strings"]
        if (strings is None) != (self.strings is None):
            kind = "int64" if strings is None else "string"
            raise ValueError(f"state_dict: expected ids as this layer has them, got {kind} ids")
        seen = _from_image(HashMap, state["seen"], "numpy")
        counters = Counters(*state["counters"])
        numbers = int(state["batches"]), int(state["seed"])
        if strings is not None:
            self.strings = _strings_of(strings)
        self.table, self.admission.seen, self.counters = table, seen, counters
        self.batches, self.first.seed = numbers

    def _table_of(self, made: torch.Tensor) -> Any:
        """The table of an image. ValueError if it is not for this layer."""
        table = _from_image(type(self.table), made, "torch")
        self._require_key(table)
        return table

    def _require_key(self, table: Any) -> None:
        if table._key != self.table._key:
            raise ValueError(
                f"state_dict: expected a table with keys {self.table._key}, got {table._key}"
            )


class ParameterRows(Rows):
    """Numbers the rows of a parameter. It does not grow."""

    def __init__(self, capacity: int, *shared: Any) -> None:
        super().__init__(*shared)
        if capacity < 1:
            raise ValueError(f"capacity: expected 1 or more rows, got {capacity}")
        self.capacity = capacity
        self.table = HashMap(
            capacity,
            torch.int64,
            self.words,
            device=self.device,
            value_dtypes=[],
            value_element_shapes=[],
        )

    def train(self, ids: torch.Tensor, counts: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """int64 [N]: the row of each distinct id. New ids get a row, or -1 if they are to wait."""
        place, found = self.table.find(ids)
        place = place.to(torch.int64)
        if not bool(found.all()):
            new = ~found
            fresh, sightings = ids[new], counts[new]
            admitted = self._decide(fresh, sightings)
            chosen = fresh[admitted]
            free = self.capacity - self.table.size()
            if len(chosen) > free:
                raise ValueError(
                    f"capacity: expected at most {self.capacity} ids, and {free} rows are free, "
                    f"got {len(chosen)} new ids; make the layer with a larger capacity"
                )
            rows = self._first_rows(chosen)
            where, _ = self.table.insert(chosen, ())
            with torch.no_grad():
                weight[where.to(torch.int64)] = rows
            place[new.nonzero()[:, 0][admitted]] = where.to(torch.int64)
            self._note(fresh, sightings, admitted)
        self._count(found, counts)
        self.batches += 1
        return place

    def _table_of(self, made: torch.Tensor) -> Any:
        table = super()._table_of(made)
        if table._values or table.capacity() > max(self.capacity, self.table.capacity()):
            raise ValueError(
                f"state_dict: expected the rows of a layer with capacity={self.capacity}, "
                f"got a table of {table.capacity()} rows and {len(table._values)} value columns"
            )
        return table


def image(table: Any) -> torch.Tensor:
    """A table as a tensor of bytes."""
    return torch.from_numpy(np.array(np.asarray(table._table.to_bytes()), np.uint8))


def _from_image(kind: type[Any], made: torch.Tensor, home: str) -> Any:
    return kind._of(kind._from_bytes(_ops.to_numpy(made)), framework(home))


def _image_of_strings(strings: StringIndex) -> torch.Tensor:
    return torch.from_numpy(np.array(np.asarray(strings._core.to_bytes()), np.uint8))


def _strings_of(made: torch.Tensor) -> StringIndex:
    from tensorhash.data._string_index import _from_bytes

    return _from_bytes(_ops.to_numpy(made).tobytes())
