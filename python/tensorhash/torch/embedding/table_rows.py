"""Rows in a table that grows or evicts: weights and optimizer state are its value columns."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch

from tensorhash import unique
from tensorhash.bounded import BoundedHashMap
from tensorhash.hash_map import HashMap
from tensorhash.optim import Optimizer
from tensorhash.torch._checks import wide
from tensorhash.torch.embedding.rows import Rows

EVICTIONS = ("lru", "lfu", "score")


class TableRows(Rows):
    """Weights in a HashMap, or with `max_capacity` in a BoundedHashMap."""

    def __init__(
        self,
        max_capacity: int | None,
        eviction: str,
        max_norm: tuple[float, float] | None,
        *shared: Any,
    ) -> None:
        super().__init__(*shared)
        if eviction not in EVICTIONS:
            raise ValueError(f'eviction: expected "lru", "lfu" or "score", got {eviction!r}')
        if max_capacity is not None and not self.device.startswith("cpu"):
            raise ValueError(
                f"max_capacity: a bounded embedding is on the CPU only, got device="
                f"{self.device!r}; leave device out and pass ids.cpu()"
            )
        self.max_capacity = max_capacity
        self.eviction = eviction
        self.max_norm = max_norm
        self.table = self._make(self.columns(None))
        self._forget()

    def _forget(self) -> None:
        #: Ids with the leaf tensor of their rows, once it has a gradient.
        self.pending: list[tuple[torch.Tensor, torch.Tensor]] = []
        #: The same leaf tensors, for GradScaler and other users of an optimizer's parameters.
        self.leaves: list[torch.Tensor] = []
        #: Does a TableOptimizer train these rows? None: no, and the user was told.
        self.is_trained: bool | None = False

    def __getstate__(self) -> dict[str, Any]:
        gone = ("pending", "leaves", "is_trained")
        return {name: value for name, value in super().__getstate__().items() if name not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    # Columns.

    def columns(self, optimizer: Optimizer | None) -> list[tuple[str, tuple[int, ...]]]:
        """The value columns: the weights, the optimizer's state, and the uses for "lfu"."""
        dtype = str(self.first.dtype).removeprefix("torch.")
        shape: tuple[int, ...] = (self.first.dim,)
        columns = [(dtype, shape)]
        if optimizer is not None:
            given = optimizer.columns(dtype, shape)
            names = [str(name) for name in given["value_dtypes"]]
            columns = list(zip(names, given["value_element_shapes"], strict=True))
        return columns + [("int64", ())] * self._counts_uses

    @property
    def _counts_uses(self) -> bool:
        return self.max_capacity is not None and self.eviction == "lfu"

    def _make(self, columns: list[tuple[str, tuple[int, ...]]]) -> Any:
        values: Any = {
            "value_dtypes": [getattr(torch, dtype) for dtype, _ in columns],
            "value_element_shapes": [shape for _, shape in columns],
        }
        if self.max_capacity is None:
            return HashMap(0, torch.int64, self.words, device=self.device, **values)
        how = "lru" if self.eviction == "lru" else "score"
        return BoundedHashMap(self.max_capacity, torch.int64, self.words, eviction=how, **values)

    def attach(self, optimizer: Optimizer) -> None:
        """Makes the columns for an optimizer. Weights stay; state of another optimizer goes."""
        self._make_columns(optimizer)
        self.is_trained = True

    def _make_columns(self, optimizer: Optimizer) -> None:
        columns = self.columns(optimizer)
        if columns == self.table._values:
            return
        made = self._make(columns)
        if self.table.size() > 0:
            if self.max_capacity is not None:
                raise ValueError(
                    "optimizer: this bounded embedding already has rows, without the columns of "
                    f"{type(optimizer).__name__}; make the TableOptimizer before the first batch"
                )
            keys, values = self.table.items()
            weights: Any = values[0] if isinstance(values, tuple) else values
            made.insert(keys, list_values=[weights, *_zeros(columns[1:], len(keys))])
        self.table = made

    # Lookups.

    def read(self, ids: torch.Tensor, oov: torch.Tensor) -> torch.Tensor:
        place, found = self.table.find(ids)
        self._count(found)
        if bool(found.all()):
            return self._bounded_norm(self._gather(place))
        out = oov.detach().expand(len(ids), -1).clone()
        out[found] = self._bounded_norm(self._gather(place[found]))
        return out

    def train(
        self, ids: torch.Tensor, counts: torch.Tensor, scores: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(weights [N, dim], bool [N] which have some) of distinct ids. New ids get a row."""
        place, found = self.table.find(ids)
        alive = found
        if bool(found.all()):
            rows = self._use(ids, place, counts, scores)
        else:
            new = ~found
            fresh, sightings = ids[new], counts[new]
            admitted = self._decide(fresh, sightings)
            chosen = new.nonzero()[:, 0][admitted]
            first = self._bounded_norm(self._first_rows(ids[chosen]))
            rows = first.new_zeros(len(ids), self.first.dim)
            there = None if scores is None else scores[found]
            rows[found] = self._use(ids[found], place[found], counts[found], there)
            rows[chosen] = first
            self._add(
                ids[chosen], first, counts[chosen], scores if scores is None else scores[chosen]
            )
            self._note(fresh, sightings, admitted)
            alive = found.clone()
            alive[chosen] = True
        self._count(found, counts)
        self.batches += 1
        return rows, alive

    def _use(
        self,
        ids: torch.Tensor,
        place: torch.Tensor,
        counts: torch.Tensor,
        scores: torch.Tensor | None,
    ) -> torch.Tensor:
        """The weights of ids in the table, which count as used now."""
        rows = self._gather(place)
        if self.max_norm is not None:
            rows = self._bounded_norm(rows)
            self.table.value_tensor(0)[place.to(torch.int64)] = rows
        bounded: Any = self.table
        if self._counts_uses:
            uses: Any = bounded.value_tensor(len(bounded._values) - 1)
            scores = uses[place.to(torch.int64)] + counts
            uses[place.to(torch.int64)] = scores
        if self.max_capacity is not None:
            bounded.activate(ids, scores=scores)
        return rows

    def _add(
        self,
        ids: torch.Tensor,
        first: torch.Tensor,
        counts: torch.Tensor,
        scores: torch.Tensor | None,
    ) -> None:
        """Inserts new ids with their first rows."""
        state = _zeros(self.table._values[1:], len(ids))
        if self._counts_uses:
            state[-1] = scores = counts
        columns: Any = [first, *state]
        if self.max_capacity is None:
            self.table.insert(ids, list_values=columns)
            return
        bounded: Any = self.table
        evicted = bounded.insert(ids, list_values=columns, scores=scores)[2]
        self.counters.evictions += len(evicted.keys)

    @property
    def _takes_scores(self) -> bool:
        return self.max_capacity is not None and self.eviction == "score"

    def _gather(self, place: torch.Tensor) -> torch.Tensor:
        return self.table.value_tensor(0).index_select(0, place)

    def _bounded_norm(self, rows: torch.Tensor) -> torch.Tensor:
        return rows if self.max_norm is None else limit_norm(rows, *self.max_norm)

    # Training.

    def leaf(self, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The rows as a leaf of autograd; their gradient waits for an optimizer's step."""
        rows.requires_grad_()
        rows.register_post_accumulate_grad_hook(functools.partial(self._arrived, ids))
        return rows

    def _arrived(self, ids: torch.Tensor, leaf: torch.Tensor) -> None:
        if not self.is_trained:
            self._tell_that_nothing_trains()
            return  # gradients that no step takes would pile up
        if not any(one is leaf for one in self.leaves):
            self.pending.append((ids, leaf))
            self.leaves.append(leaf)

    def _tell_that_nothing_trains(self) -> None:
        if self.is_trained is None:
            return
        self.is_trained = None
        warnings.warn(
            "a backward pass reached the rows of a hash embedding, but no TableOptimizer trains "
            "them: they are no parameters of the model. Make one before the first backward pass, "
            "or make the layer with capacity= for torch.optim; call layer.eval() if rows are to rest",
            stacklevel=2,
        )

    def gradients(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(distinct ids, the sum of the gradients of each) since the last forget_gradients()."""
        given = [(ids, leaf.grad) for ids, leaf in self.pending if leaf.grad is not None]
        if len(given) == 1:
            return given[0]
        if not given:
            ids = torch.empty((0, *self.words), dtype=torch.int64)
            return ids, torch.empty((0, self.first.dim), dtype=self.first.dtype)
        ids, inverse = distinct_ids(torch.cat([ids for ids, _ in given]))
        rows = wide(torch.cat([grad for _, grad in given]))
        total = rows.new_zeros(len(ids), self.first.dim)
        return ids, total.index_add_(0, inverse, rows).to(self.first.dtype)

    def forget_gradients(self) -> None:
        """Drops all gradients."""
        for leaf in self.leaves:
            leaf.grad = None
        self.pending.clear()
        self.leaves.clear()

    def total(self, number: float) -> float:
        """The sum of a number over all ranks: there is one."""
        return number

    def step(self, ids: torch.Tensor, gradients: torch.Tensor, optimizer: Optimizer) -> None:
        """Makes the optimizer's step of each id. Ids that were evicted meanwhile are left out."""
        self.table.update(ids, gradients, optimizer)

    # The whole table.

    @property
    def clock(self) -> int:
        """The clock of a bounded table, or the number of batches."""
        return self.table.clock if isinstance(self.table, BoundedHashMap) else self.batches

    def expire(self, before: int) -> int:
        """Removes the ids that were last used before this clock; returns their number."""
        if self.max_capacity is None or self.eviction != "lru":
            raise ValueError(
                'expire: only an embedding with max_capacity and eviction="lru" '
                "knows when an id was used last"
            )
        bounded: Any = self.table
        old = bounded.keys()[bounded.scores() < before]
        bounded.erase(old)
        return len(old)

    def move(self, device: str) -> None:
        if self.max_capacity is not None:
            raise RuntimeError(
                f"device: a bounded embedding stays on the CPU, got {device}; "
                f"keep it there and pass ids.cpu()"
            )
        super().move(device)

    def _way_out(self) -> str:
        return "pass ids.cpu()" if self.max_capacity is not None else super()._way_out()

    def _table_of(self, made: torch.Tensor) -> Any:
        table = super()._table_of(made)
        columns = self.columns(None)
        last = len(columns) - 1
        fits = (
            table._values[0] == columns[0]
            and table._values[len(table._values) - last :] == columns[1:]
        )
        if not fits:
            raise ValueError(
                f"state_dict: expected rows of {columns[0][0]} {columns[0][1]}, got a table with "
                f"the value columns {table._values}"
            )
        if isinstance(table, BoundedHashMap) and table.max_capacity != self.max_capacity:
            raise ValueError(
                f"state_dict: expected max_capacity={self.max_capacity}, got {table.max_capacity}"
            )
        return table if self.device.startswith("cpu") else table.to(self.device)


def limit_norm(rows: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    """Rows with a larger norm are scaled down to it, as torch.nn.Embedding does."""
    norms = torch.linalg.vector_norm(rows, norm_type, dim=-1, keepdim=True)
    return torch.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


def _zeros(columns: list[tuple[str, tuple[int, ...]]], rows: int) -> list[torch.Tensor]:
    return [torch.zeros(rows, *shape, dtype=getattr(torch, dtype)) for dtype, shape in columns]


def distinct_ids(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(distinct ids in order of first occurrence, the place of each row among them)."""
    made: Any = unique(ids, return_inverse=True)
    distinct, inverse = made
    return distinct, inverse
