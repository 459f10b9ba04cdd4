"""DistributedHashMap: HashMap's batch methods over the ranks of a process group.
Over 400 lines: one class, and half of the lines are docstrings with examples.

All ranks must call the collective methods in the same order, each with its own batch. A call sends
the rows to the owners of their keys, applies them to the owner's HashMap, and returns the answers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tensorhash import _core
from tensorhash._arguments import element_text, integer, words
from tensorhash._map import one_or_tuple
from tensorhash._types import Array, ArrayLike, DtypeLike, ShapeLike
from tensorhash.distributed import checkpoint
from tensorhash.distributed.batch import Batch, once, question
from tensorhash.distributed.calls import Calls, attempt
from tensorhash.distributed.devices import Give, on_host, on_host_with
from tensorhash.distributed.exchange import Exchange
from tensorhash.distributed.messages import as_bytes
from tensorhash.distributed.update import Update
from tensorhash.hash_map import HashMap

if TYPE_CHECKING:
    import torch.distributed as dist
    from typing_extensions import Self

    from tensorhash.optim import Optimizer


class DistributedHashMap:
    """A HashMap over the ranks of a process group. A hash of the key decides which rank owns it.

    A call gives the results of one HashMap that gets rank 0's batch first, then rank 1's, and so on
    (float sums: up to rounding, and the same in every run). Batches may differ in size, or be
    empty. The buffer index of a key is an int64: owner << 32 | index in the owner's buffers.

    An error in one rank's arguments raises on every rank, and changes nothing on any of them. If a
    rank dies, all others raise within the group's timeout; their own entries stay valid and
    readable in `local`.

    >>> import torch.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> table = DistributedHashMap(None, 0, "int64", (), "float32", ())
    >>> table.insert(np.array([7, 9, 7]), np.float32([1, 2, 3]))
    (array([0, 1, 0]), array([ True,  True, False]))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        process_group: Any,
        init_capacity: int,
        key_dtype: DtypeLike,
        key_element_shape: ShapeLike,
        value_dtype: DtypeLike | Sequence[DtypeLike] | None = None,
        value_element_shape: ShapeLike | Sequence[ShapeLike] | None = None,
        device: Any = "cpu",
        *,
        value_dtypes: Sequence[DtypeLike] | None = None,
        value_element_shapes: Sequence[ShapeLike] | None = None,
    ) -> None:
        """Collective. A `process_group` of None means all processes.

        `init_capacity` is the total over all ranks. For a group that cannot send CPU memory, such
        as nccl's, a gloo group with the same ranks is made. If all tables are on CUDA devices and
        the group has nccl, rows go over nccl, and gloo sends only their numbers.
        """

        def make() -> HashMap:
            return HashMap(
                _share(init_capacity, exchange.ranks, "init_capacity"),
                key_dtype,
                key_element_shape,
                value_dtype,
                value_element_shape,
                device,
                value_dtypes=value_dtypes,
                value_element_shapes=value_element_shapes,
            )

        exchange = Exchange(process_group)
        local, error = attempt(make)
        elements = "" if local is None else _signature(local)
        place = "" if local is None else exchange.sends_from(local.device)
        exchange.agree(f"DistributedHashMap({elements}{place})", error)
        assert local is not None
        exchange.meet()
        self._exchange = exchange
        self._local: HashMap = local
        self._calls = Calls(exchange, local)
        self._key = local._key
        self._values = local._values

    # Batches.

    def insert(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array]:
        """Adds new keys; of equal keys the lowest rank's first row wins. Collective.

        Returns (int64 [N] owner << 32 | index, valid for every row; bool [N] newly inserted).
        """
        return self._write("insert", keys, (values, list_values), "first")

    def insert_or_assign(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array]:
        """Adds new keys, overwrites others; the highest rank's last row wins. Collective."""
        return self._write("insert_or_assign", keys, (values, list_values), "last")

    def accumulate(
        self,
        keys: ArrayLike,
        values: ArrayLike | Sequence[ArrayLike] = None,
        reduce: str | Sequence[str] = "sum",
        *,
        list_values: Sequence[ArrayLike] | None = None,
    ) -> tuple[Array, Array]:
        """Combines each row with the stored value, as HashMap.accumulate. Collective.

        `reduce` is a word of HashMap.accumulate. A rank with many equal keys combines its own rows
        before it sends them, so float sums may differ from those of a single table by rounding.
        """
        return self._write("accumulate", keys, (values, list_values), reduce)

    def update(
        self,
        keys: ArrayLike,
        gradients: ArrayLike,
        optimizer: Optimizer,
        *,
        missing: str = "skip",
        duplicates: str = "in_order",
        initial: Any = None,
    ) -> tuple[Array, Array]:
        """Makes one optimizer step for each row, as HashMap.update. Collective.

        Optimizer and options must be the same on every rank; all ranks pass `initial`, or none
        does. Returns (int64 [N] owner << 32 | index, -1 if skipped; bool [N] whether the key was
        there).
        """

        def prepare() -> tuple[Batch, Update]:
            how = missing, duplicates, initial
            one = Update(self._local, self._exchange.ranks, keys, gradients, optimizer, *how)
            return one.batch, one

        prepared, error = attempt(prepare)
        step = "update" if prepared is None else prepared[1].step
        (batch, mine), arrived = self._calls.deliver(step, prepared, error)
        places, found = self._calls.update(
            step,
            batch,
            arrived,
            mine.missing,
            lambda: mine.apply(self._local._table, arrived.keys, arrived.values),
        )
        return mine.give(places), mine.give(found)

    def activate(self, keys: ArrayLike) -> tuple[Array, Array]:
        """Adds new keys with zeros as values. Returns as `insert`. Collective."""
        (batch, give), arrived = self._calls.deliver("activate", *self._keys_of(keys))
        places, new = self._calls.add("activate", batch, arrived, self._local._table.activate)
        return give(places), give(new)

    def find(self, keys: ArrayLike) -> tuple[Array, Array]:
        """Finds keys. Collective.

        Returns (int64 [N] owner << 32 | index, -1 if missing; bool [N] found).
        """
        (batch, give), arrived = self._calls.deliver("find", *self._keys_of(keys))
        places, found = self._calls.find("find", batch, arrived)
        return give(places), give(found)

    def contains(self, keys: ArrayLike) -> Array:
        """bool [N]: which keys are in the table. Collective."""
        (batch, give), arrived = self._calls.deliver("contains", *self._keys_of(keys))
        answers = self._calls.ask("contains", batch, arrived, self._local._table.contains)
        mask: Array = give(answers)
        return mask

    def erase(self, keys: ArrayLike) -> Array:
        """Removes keys. Collective.

        Returns bool [N]: which rows removed a key. Of equal keys, the lowest rank's first row does.
        """
        (batch, give), arrived = self._calls.deliver("erase", *self._keys_of(keys))
        erase = self._local._table.erase
        mask: Array = give(self._calls.ask("erase", batch, arrived, erase, only_first=True))
        return mask

    def get(self, keys: ArrayLike, default: Any = None) -> Array | tuple[Array, ...]:
        """The values of each key; zeros or `default` if missing, as HashMap.get. Collective."""

        def prepare() -> tuple[Batch, Give]:
            rows, give = self._rows(keys)
            defaults = [on_host(one) for one in self._local._take_defaults(default)]
            return question(self._key, self._values, self.world_size, rows, defaults), give

        (batch, give), arrived = self._calls.deliver("get", *attempt(prepare))
        return one_or_tuple(self._calls.fetch("get", batch, arrived), give)

    # The whole table.

    def size(self) -> int:
        """The number of keys on all ranks. Collective."""
        return sum(self._exchange.agree("size", numbers=[self.local_size()]).sums)

    def local_size(self) -> int:
        """The number of keys that this rank owns; not collective."""
        return self._local.size()

    def reserve(self, capacity: int) -> None:
        """Makes room for `capacity` keys over all ranks. Collective."""
        total, error = attempt(lambda: integer(capacity, "capacity"))
        self._exchange.agree(f"reserve(capacity={total})", error)
        share = _share(total, self._exchange.ranks, "capacity")
        self._everywhere("reserve (room)", lambda: self._local.reserve(share))

    def shrink_to_fit(self) -> None:
        """Gives back unused memory on all ranks. Never moves an entry. Collective."""
        self._exchange.agree("shrink_to_fit")
        self._everywhere("shrink_to_fit (memory)", self._local.shrink_to_fit)

    def clear(self) -> None:
        """Removes all keys on all ranks; the capacity stays. Collective."""
        self._exchange.agree("clear")
        self._local.clear()

    def validate(self) -> None:
        """Checks every rank's table and that it owns its keys; RuntimeError if not. Collective."""

        def check() -> None:
            self._local.validate()
            keys = self._local._table.keys().cpu()
            owner = as_bytes(self._owner(keys)).view(torch.int64)
            misplaced = (owner != self.rank).nonzero().flatten()
            if len(misplaced):
                raise RuntimeError(
                    f"rank {self.rank} holds {len(misplaced)} key(s) of other ranks, "
                    f"the first is {np.asarray(keys)[int(misplaced[0])]}"
                )

        self._everywhere("validate", check)

    # This rank's part.

    @property
    def local(self) -> HashMap:
        """This rank's entries as a HashMap. Only read it: keys added here are not routed."""
        return self._local

    def keys(self) -> Array:
        """A copy of the keys that this rank owns; not collective."""
        return self._local.keys()

    def items(self) -> tuple[Array, Array | tuple[Array, ...]]:
        """Copies of the (keys, values) that this rank owns; not collective."""
        return self._local.items()

    def owner(self, keys: ArrayLike) -> Array:
        """int64 [N]: the rank that owns each key, also for missing keys; not collective."""
        rows, give = self._rows(keys)
        return give(self._owner(rows))

    @property
    def rank(self) -> int:
        """This process's rank in the group."""
        return self._exchange.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self._exchange.ranks

    @property
    def process_group(self) -> dist.ProcessGroup:
        """The gloo group of the table's collectives: the given one, or one with the same ranks."""
        return self._exchange.group

    # Checkpoints.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint: a folder with one file per rank. Collective.

        If the save fails, the old checkpoint stays. All ranks must see the same folder, on one
        machine or on a shared file system.
        """
        checkpoint.save(self._exchange, self._local, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        process_group: Any = None,
        *,
        max_bytes: int | None = None,
        device: Any = "cpu",
    ) -> Self:
        """Reads a checkpoint that any number of ranks wrote. Collective.

        Restores keys and values; buffer indices are new. Untrusted folders are safe: each rank
        takes at most `max_bytes` for its table, by default in proportion to the files' size.
        `device` is where this rank keeps its part.
        """
        exchange = Exchange(process_group)
        found, error = attempt(lambda: checkpoint.Checkpoint(path, max_bytes, exchange.ranks))
        # Compare ids, not paths: machines may mount the same folder in different places.
        exchange.agree(f"load(checkpoint {found.id if found else ''})", error)
        assert found is not None
        columns = [dtype for dtype, _ in found.values], [shape for _, shape in found.values]
        dtype, shape = found.key
        table = cls(
            process_group,
            found.count,
            dtype,
            shape,
            device=device,
            value_dtypes=columns[0],
            value_element_shapes=columns[1],
        )
        rounds = found.rounds(exchange.ranks)
        chunks = found.chunks(range(exchange.rank, len(found.files), exchange.ranks), rounds)
        for _ in range(rounds):
            chunk, error = attempt(lambda: next(chunks))
            table._exchange.agree("load (read)", error)
            assert chunk is not None
            table.insert(chunk[0], list_values=chunk[1])
        wrong = found.wrong_size(table.size())
        table._exchange.agree("load (end)", wrong)
        return table

    def __repr__(self) -> str:
        return (
            f"DistributedHashMap(rank {self.rank} of {self.world_size}, "
            f"local_size={self.local_size()}, {_signature(self._local)})"
        )

    def _rows(self, keys: ArrayLike) -> tuple[Any, Give]:
        return on_host_with(*self._local._take(keys, self._key, "keys"))

    def _keys_only(self, keys: ArrayLike) -> tuple[Batch, Give]:
        rows, give = self._rows(keys)
        return once(self._key, (), self._exchange.ranks, rows), give

    def _owner(self, rows: Any) -> _core.Tensor:
        return _core.rank_of_keys(rows, self._key, self._exchange.ranks)

    def _keys_of(self, keys: ArrayLike) -> tuple[Any, BaseException | None]:
        return attempt(lambda: self._keys_only(keys))

    def _write(
        self, verb: str, keys: ArrayLike, values: tuple[Any, Any], reduce: str | Sequence[str]
    ) -> tuple[Array, Array]:
        reductions: list[str] = []

        def prepare() -> tuple[Batch, Give]:
            reductions.extend(str(one) for one in words(reduce))
            rows, give = self._rows(keys)
            columns = [on_host(one) for one in self._local._take_values(*values, rows)]
            ranks = self._exchange.ranks
            return once(self._key, self._values, ranks, rows, columns, reductions), give

        prepared, error = attempt(prepare)
        step = verb if verb != "accumulate" else f"accumulate(reduce={reductions!r})"
        (batch, give), arrived = self._calls.deliver(step, prepared, error)
        # Each rank has counted its own rows; their owner adds the counts.
        joined = ["sum" if one == "count" else one for one in reductions]
        extra = (joined,) if verb == "accumulate" else ()
        apply = getattr(self._local._table, verb)
        places, new = self._calls.add(
            step, batch, arrived, lambda rows: apply(rows, arrived.values, *extra)
        )
        return give(places), give(new)

    def _everywhere(self, step: str, action: Callable[[], None]) -> None:
        """Runs a local action on every rank; raises on all ranks if it fails on one."""
        _, error = attempt(action)
        self._exchange.agree(step, error)


def _share(capacity: int, ranks: int, argument: str) -> int:
    """One rank's share of a capacity: the mean plus four standard deviations."""
    total = integer(capacity, argument)
    if total <= 0 or ranks == 1:
        return total
    mean = total / ranks
    return min(total, math.ceil(mean + 4 * math.sqrt(mean)))


def _signature(table: HashMap) -> str:
    values = "".join(f", value {element_text(value)}" for value in table._values)
    return f"key {element_text(table._key)}{values}"
