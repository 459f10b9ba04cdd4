"""DistributedHashMap: HashMap's batch methods over the ranks of a process group.

Every method marked collective is called by all ranks, in the same order, each with a batch of its
own. A call goes: distinct keys -> owners -> the owner's HashMap -> answers back -> rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash import _core
from tensorhash._table import Array, ArrayLike, DtypeLike, ShapeLike, element_text, integer
from tensorhash.distributed import checkpoint
from tensorhash.distributed.batch import Batch
from tensorhash.distributed.exchange import Exchange
from tensorhash.distributed.routing import Bytes, owners
from tensorhash.distributed.rows import to_bytes, to_tensor
from tensorhash.hash_map import HashMap, _one_or_tuple, _words

if TYPE_CHECKING:
    from typing_extensions import Self

_MAX_ROWS = 2**31 - 1

Give = Callable[[_core.Tensor], Array]


class DistributedHashMap:
    """A HashMap whose entries are spread over the ranks of a process group by a hash of the key.

    The result of a call is that of one HashMap fed with rank 0's batch first, then rank 1's, and so
    on (float sums: to rounding, the same in every run). Batches may differ in size, or be empty.
    Where a key lives is an int64: its owner << 32 | the index in the owner's buffers.

    An error in one rank's arguments raises on every rank, and nothing has changed on any.
    A rank that dies makes every other raise within the group's timeout; what each of them owns stays
    sound and readable in `local`.
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
        """Collective. `process_group` None is all processes; `init_capacity` counts all ranks."""

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
        local, error = _attempt(make)
        elements = "" if local is None else _signature(local)
        exchange.agree(f"DistributedHashMap({elements})", error)
        assert local is not None
        self._exchange = exchange
        self._local: HashMap = local
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
        """Adds the keys that are new; of equal keys the lowest rank's first row wins. Collective.

        Returns (int64 [N] owner << 32 | index, right for every row; bool [N] newly inserted).
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
        """Joins each row with what is stored: "sum", "min", "max", "first" or "last". Collective.

        Rows of a rank are joined before they travel, so float sums differ from one table's by rounding.
        """
        return self._write("accumulate", keys, (values, list_values), reduce)

    def activate(self, keys: ArrayLike) -> tuple[Array, Array]:
        """Adds the keys that are new, values zero. Collective."""
        return self._locate("activate", keys, self._local._table.activate, adds=True)

    def find(self, keys: ArrayLike) -> tuple[Array, Array]:
        """(int64 [N] owner << 32 | index, -1 if missing; bool [N] found). Collective."""
        return self._locate("find", keys, self._local._table.find, adds=False)

    def contains(self, keys: ArrayLike) -> Array:
        """bool [N]: which keys are there. Collective."""
        batch, give, answers = self._ask("contains", keys, self._local._table.contains)
        return give(_core.Tensor.wrap(answers[batch.inverse]))

    def erase(self, keys: ArrayLike) -> Array:
        """Removes keys; bool [N]: which rows did, of equal keys the lowest rank's first. Collective."""
        batch, give, answers = self._ask("erase", keys, self._local._table.erase)
        return give(_core.Tensor.wrap(answers[batch.inverse] & batch.first))

    def get(self, keys: ArrayLike, default: Any = None) -> Array | tuple[Array, ...]:
        """The values of each key; zeros, or `default`, for missing ones, as HashMap.get. Collective."""
        step = "get"

        def prepare() -> tuple[Batch, Give, list[Any]]:
            rows, give = self._local._take(keys, self._key, "keys")
            empty = _core.HashMap(0, self._key, self._values, "cpu:0")
            defaults = empty.get(rows, self._local._take_defaults(default))
            return Batch(self._key, (), self._exchange.ranks, rows), give, defaults

        def look_up() -> tuple[Any, list[Bytes]]:
            indices, found = map(np.asarray, self._local._table.find(arrived.keys))
            there = indices[found]
            views = [np.asarray(self._local._table.value_tensor(i)) for i in range(columns)]
            named = zip(views, self._values, strict=True)
            return found, [to_bytes(view[there], element) for view, element in named]

        columns = len(self._values)
        (batch, give, defaults), arrived = self._deliver(step, *_attempt(prepare))
        (found, values), error = _attempt(look_up, (None, None))
        self._exchange.agree(f"{step} (answers)", error)
        back = self._exchange.rows(step, [_bytes_of(found)], arrived.counts, batch.counts)
        there = back[0].reshape(-1).view(bool)
        # Only the values of keys that are there travel; both sides know how many from the mask.
        sizes = _sums(found, arrived.counts), _sums(there, batch.counts)
        received = self._exchange.rows(step, values, *sizes)
        results = []
        place = batch.restore(np.where(there, np.cumsum(there) - 1, -1))[batch.inverse]
        for column, (filled, element) in enumerate(zip(defaults, self._values, strict=True)):
            rows = to_bytes(np.asarray(filled), element)
            rows[place >= 0] = received[column][place[place >= 0]]
            results.append(give(to_tensor(rows, element, "values")))
        return _one_or_tuple(results)

    # The whole table.

    def size(self) -> int:
        """How many keys there are on all ranks. Collective."""
        return int(self._exchange.agree("size", numbers=[self.local_size()])[:, 0].sum())

    def local_size(self) -> int:
        """How many keys this rank owns; not collective."""
        return self._local.size()

    def reserve(self, capacity: int) -> None:
        """Makes room for so many keys over all ranks. Collective."""
        share, error = _attempt(lambda: _share(capacity, self._exchange.ranks, "capacity"))
        self._exchange.agree(f"reserve(capacity={capacity!r})", error)
        self._everywhere("reserve (room)", lambda: self._local.reserve(share))

    def clear(self) -> None:
        """Removes all keys on all ranks; the capacity stays. Collective."""
        self._exchange.agree("clear")
        self._local.clear()

    def validate(self) -> None:
        """RuntimeError on every rank unless each rank's table is sound and owns its keys. Collective."""

        def check() -> None:
            self._local.validate()
            keys = np.asarray(self._local._table.keys())
            strangers = np.flatnonzero(self._owners(keys) != self._exchange.rank)
            if len(strangers):
                raise RuntimeError(
                    f"rank {self._exchange.rank} holds {len(strangers)} key(s) of other ranks, "
                    f"the first is {keys[strangers[0]]}"
                )

        self._everywhere("validate", check)

    # This rank's part.

    @property
    def local(self) -> HashMap:
        """The entries of this rank, a HashMap to read; keys added to it directly are not routed."""
        return self._local

    def keys(self) -> Array:
        """A copy of the keys that this rank owns; not collective."""
        return self._local.keys()

    def items(self) -> tuple[Array, Array | tuple[Array, ...]]:
        """(keys, values) that this rank owns, copies; not collective."""
        return self._local.items()

    def owner(self, keys: ArrayLike) -> Array:
        """int64 [N]: the rank that owns each key, there or not; not collective."""
        rows, give = self._local._take(keys, self._key, "keys")
        batch = Batch(self._key, (), 1, rows)
        distinct = owners(batch.outgoing[0], self._key[0], self._exchange.ranks)
        return give(_core.Tensor.wrap(distinct[batch.inverse].astype(np.int64)))

    @property
    def rank(self) -> int:
        """This process's number in the group."""
        return self._exchange.rank

    @property
    def world_size(self) -> int:
        """How many ranks the table is spread over."""
        return self._exchange.ranks

    @property
    def process_group(self) -> Any:
        """The group of the table's collectives."""
        return self._exchange.group

    # Checkpoints.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, a folder with a file per rank: the old one or the new. Collective.

        All ranks must see the folder: one machine, or a shared file system.
        """
        checkpoint.save(self._exchange, self._local, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], process_group: Any = None) -> Self:
        """A checkpoint on this group's ranks, however many wrote it. Collective.

        Keys and values come back; where they live is numbered anew.
        """
        exchange = Exchange(process_group)
        found, error = _attempt(lambda: checkpoint.Checkpoint(path))
        exchange.agree(f"load({os.fspath(path)!r}, {found.id if found else ''})", error)
        assert found is not None
        columns = [dtype for dtype, _ in found.values], [shape for _, shape in found.values]
        table = cls(
            exchange.group,
            found.count,
            *found.key,
            value_dtypes=columns[0],
            value_element_shapes=columns[1],
        )
        rounds = found.rounds(exchange.ranks)
        chunks = found.chunks(range(exchange.rank, len(found.files), exchange.ranks), rounds)
        for _ in range(rounds):
            chunk, error = _attempt(lambda: next(chunks))
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

    # How a call is made.

    def _owners(self, keys: Any) -> np.ndarray[Any, Any]:
        return owners(to_bytes(keys, self._key), self._key[0], self._exchange.ranks)

    def _everywhere(self, step: str, action: Callable[[], None]) -> None:
        """Runs a local action on every rank, then raises on all if it failed on one."""
        _, error = _attempt(action)
        self._exchange.agree(step, error)

    def _deliver(
        self, step: str, prepared: Any, error: BaseException | None
    ) -> tuple[Any, _Arrived]:
        """Brings every rank's batch to the owners. `prepared` is (Batch, ...) unless `error`."""
        counts = prepared[0].counts if error is None else ()
        matrix = self._exchange.agree(step, error, counts)
        incoming = matrix.sum(axis=0)
        if incoming.max() > _MAX_ROWS:
            raise ValueError(
                f"keys: at most {_MAX_ROWS} rows may go to one rank in a call, this one would bring "
                f"{incoming.max()} to rank {incoming.argmax()}; split it"
            )
        batch = prepared[0]
        into = matrix[:, self._exchange.rank]
        received = self._exchange.rows(step, batch.outgoing, batch.counts, into)
        keys = to_tensor(received[0], self._key, "keys")
        elements = self._values[: len(received) - 1]
        values = [
            to_tensor(rows, element, f"values[{i}]")
            for i, (rows, element) in enumerate(zip(received[1:], elements, strict=True))
        ]
        return prepared, _Arrived(keys, values, into)

    def _write(
        self, verb: str, keys: ArrayLike, values: tuple[Any, Any], reduce: str | Sequence[str]
    ) -> tuple[Array, Array]:
        words: list[str] = []

        def prepare() -> tuple[Batch, Give]:
            words.extend(_words(reduce))
            rows, give = self._local._take(keys, self._key, "keys")
            columns = self._local._take_values(*values, rows)
            ranks = self._exchange.ranks
            return Batch(self._key, self._values, ranks, rows, columns, words), give

        prepared, error = _attempt(prepare)
        step = verb if verb != "accumulate" else f"accumulate(reduce={words!r})"
        (batch, give), arrived = self._deliver(step, prepared, error)
        table = self._local._table
        if verb == "accumulate":
            return self._answer(
                step,
                batch,
                give,
                arrived,
                lambda rows: table.accumulate(rows, arrived.values, words),
            )
        apply = table.insert if verb == "insert" else table.insert_or_assign
        return self._answer(step, batch, give, arrived, lambda rows: apply(rows, arrived.values))

    def _locate(
        self, step: str, keys: ArrayLike, apply: Callable[[Any], Any], adds: bool
    ) -> tuple[Array, Array]:
        (batch, give), arrived = self._deliver(step, *_attempt(lambda: self._keys_only(keys)))
        return self._answer(step, batch, give, arrived, apply, adds)

    def _keys_only(self, keys: ArrayLike) -> tuple[Batch, Give]:
        rows, give = self._local._take(keys, self._key, "keys")
        return Batch(self._key, (), self._exchange.ranks, rows), give

    def _answer(
        self,
        step: str,
        batch: Batch,
        give: Give,
        arrived: _Arrived,
        apply: Callable[[Any], Any],
        adds: bool = True,
    ) -> tuple[Array, Array]:
        """The owners apply the batch and send (index, mask) back, four bytes a key."""
        if adds:
            # Running out of memory is met here, where all ranks can still turn back together.
            _, error = _attempt(lambda: self._make_room(arrived.keys))
            self._exchange.agree(f"{step} (room)", error)
        located, error = _attempt(lambda: apply(arrived.keys))
        self._exchange.agree(f"{step} (answers)", error)
        index, mask = map(np.asarray, located)
        # Indices have 31 bits: the complement says "there already", or -1 "missing".
        coded = np.where(mask, index, ~index) if adds else index
        back = self._exchange.rows(step, [_bytes_of(coded)], arrived.counts, batch.counts)
        answers = back[0].reshape(-1).view(np.int32)
        local = np.where(answers < 0, ~answers, answers) if adds else answers
        owner = np.repeat(np.arange(self._exchange.ranks, dtype=np.int64), batch.counts)
        where = np.where(local < 0, np.int64(-1), owner << 32 | local)
        place = batch.restore(where)[batch.inverse]
        yes = batch.restore(answers >= 0)[batch.inverse]
        yes = yes & batch.first if adds else yes
        return give(_core.Tensor.wrap(place)), give(_core.Tensor.wrap(yes))

    def _ask(
        self, step: str, keys: ArrayLike, apply: Callable[[Any], Any]
    ) -> tuple[Batch, Give, np.ndarray[Any, Any]]:
        """A mask from the owners, one byte a key, in the order of the batch's distinct keys."""
        (batch, give), arrived = self._deliver(step, *_attempt(lambda: self._keys_only(keys)))
        mask, error = _attempt(lambda: np.asarray(apply(arrived.keys)))
        self._exchange.agree(f"{step} (answers)", error)
        back = self._exchange.rows(step, [_bytes_of(mask)], arrived.counts, batch.counts)
        return batch, give, batch.restore(back[0].reshape(-1).view(bool))

    def _make_room(self, keys: _core.Tensor) -> None:
        table = self._local._table
        size, capacity = table.size(), table.capacity()
        if size + keys.shape[0] <= capacity:
            return
        # Many of the rows may be there already, or come from several ranks.
        missing = ~np.asarray(table.contains(keys))
        rows = to_bytes(np.asarray(keys), self._key)[missing]
        scratch = _core.HashMap(0, self._key, [], "cpu:0")
        scratch.insert(to_tensor(rows, self._key, "keys"), ())
        needed = size + scratch.size()
        if needed > capacity:
            table.reserve(max(needed, min(2 * capacity, _MAX_ROWS)))


class _Arrived:
    """What reached an owner: counts[r] rows of rank r, rank by rank."""

    def __init__(self, keys: _core.Tensor, values: list[_core.Tensor], counts: Any) -> None:
        self.keys = keys
        self.values = values
        self.counts = counts


def _attempt(
    action: Callable[[], Any], otherwise: Any = None
) -> tuple[Any, Exception | KeyboardInterrupt | None]:
    """(result, None), or (otherwise, the error), to be agreed on with the other ranks."""
    try:
        return action(), None
    except (Exception, KeyboardInterrupt) as error:
        return otherwise, error


def _share(capacity: int, ranks: int, argument: str) -> int:
    """One rank's part of a capacity: the mean, and four standard deviations more."""
    total = integer(capacity, argument)
    if total <= 0 or ranks == 1:
        return total
    mean = total / ranks
    return min(total, math.ceil(mean + 4 * math.sqrt(mean)))


def _signature(table: HashMap) -> str:
    values = "".join(f", value {element_text(value)}" for value in table._values)
    return f"key {element_text(table._key)}{values}"


def _bytes_of(array: Any) -> Bytes:
    rows = np.ascontiguousarray(array)
    return rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize)


def _sums(mask: np.ndarray[Any, Any], counts: Any) -> list[int]:
    """How many of each rank's rows are True."""
    ends = np.cumsum(counts)
    totals = np.concatenate(([0], np.cumsum(mask)))
    return [int(totals[end] - totals[end - n]) for n, end in zip(counts, ends, strict=True)]
