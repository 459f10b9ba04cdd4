"""Checkpoints of a distributed table: a folder with one file per rank, and a manifest of the files.

Each save gives its files new names, and replaces the manifest when all files are complete. So a
process that is killed leaves either the old checkpoint or the new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorhash._disk import Limit, open_regular, parse_max_bytes, replacing
from tensorhash.distributed import shard_file
from tensorhash.distributed.rows import to_tensor
from tensorhash.distributed.shard_file import CHUNK_ROWS, ShardFile, field
from tensorhash.hash_map import HashMap
from tensorhash.sharded_bounded import ShardedBoundedHashMap

if TYPE_CHECKING:
    from tensorhash.distributed.exchange import Exchange

_MANIFEST = "checkpoint.json"
_SUFFIX = ".thshard"


def save(exchange: Exchange, table: HashMap, path: Any) -> None:
    """Writes this rank's file, and on rank 0 the manifest. Collective."""
    error: Exception | None = None
    folder = ""
    try:
        folder = os.fsdecode(path)
        os.makedirs(folder, exist_ok=True)
    except (OSError, TypeError) as caught:
        error = caught
    # All ranks use rank 0's random number in the file names.
    numbers = exchange.agree("save", error, [secrets.randbits(62)]).sums
    token = f"{numbers[0]:016x}"
    counts = _write_files(exchange, table, folder, token)
    try:
        if exchange.rank == 0:
            _write_manifest(folder, table, token, counts)
            _remove_others(folder, token)
    except Exception as caught:
        error = caught
    exchange.agree("save (manifest)", error)


def _write_files(exchange: Exchange, table: HashMap, folder: str, token: str) -> list[int]:
    """Writes this rank's file; returns the number of entries in each rank's file.

    If a rank fails, or rank 0 cannot see a file, all ranks raise and remove their files.
    """
    file = os.path.join(folder, _file_name(token, exchange.rank, exchange.ranks))
    facts = {"id": token, "rank": exchange.rank, "ranks": exchange.ranks}
    error: Exception | None = None
    count = 0
    try:
        count = shard_file.write(file, table, facts)["count"]
    except Exception as caught:
        error = caught
    try:
        counts = exchange.agree("save (files)", error, [count]).sums
        if exchange.rank == 0:
            error = _unseen(folder, token, counts)
        exchange.agree("save (seen by rank 0)", error)
        return counts
    except Exception:
        # If the ranks agreed on a failure, no manifest will name the files, so remove them. If a
        # collective failed, rank 0 may still write the manifest, so keep the file; the next save
        # removes it if it is not used.
        if not exchange.is_broken:
            with contextlib.suppress(OSError):
                os.remove(file)
        raise


def _unseen(folder: str, token: str, counts: list[int]) -> ValueError | None:
    """The error if rank 0 does not see a rank's new file, because the folder is another one."""
    for rank, count in enumerate(counts):
        try:
            file = ShardFile(os.path.join(folder, _file_name(token, rank, len(counts))))
            expected, got = (token, rank, count), (file.id, file.rank, file.count)
            if got != expected:
                raise ValueError(f"{file.path}: expected (id, rank, count) {expected}, got {got}")
        except Exception as caught:
            return ValueError(
                f"path: expected a folder that all ranks see, but in {folder} rank 0 does not see "
                f"the file that rank {rank} wrote ({caught}); "
                f"an earlier checkpoint there is still valid"
            )
    return None


def _file_name(token: str, rank: int, ranks: int) -> str:
    return f"{token}-{rank:05}-of-{ranks:05}{_SUFFIX}"


def _write_manifest(folder: str, table: HashMap, token: str, counts: list[int]) -> None:
    names = [_file_name(token, rank, len(counts)) for rank in range(len(counts))]
    facts = {
        "format": 1,
        "id": token,
        **shard_file.describe(table),
        "count": sum(counts),
        "files": [{"name": n, "count": c} for n, c in zip(names, counts, strict=True)],
    }
    facts["crc32"] = _manifest_sum(facts)
    _sync_folder(folder)  # the files must be on disk before the manifest names them
    with replacing(os.path.join(folder, _MANIFEST)) as file:
        file.write(json.dumps(facts, indent=1).encode())


def _manifest_sum(facts: dict[str, Any]) -> str:
    text = json.dumps({**facts, "crc32": ""}, sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x}"


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_others(folder: str, token: str) -> None:
    """Removes the files of earlier saves and of saves that did not finish."""
    for name in os.listdir(folder):
        if name.endswith(_SUFFIX) and token not in name:
            with contextlib.suppress(OSError):
                os.remove(os.path.join(folder, name))


class Checkpoint:
    """A checkpoint to read. Checks the manifest and the headers.

    `tables` tables will share its rows. Each takes at most `max_bytes`, by default in proportion to
    the files' size.
    """

    def __init__(self, path: Any, max_bytes: int | None = None, tables: int = 1) -> None:
        most = parse_max_bytes(max_bytes)
        folder = os.fsdecode(path)
        manifest = os.path.join(folder, _MANIFEST)
        facts = _read_manifest(manifest)
        self.path = folder
        self.id: str = field(facts, "id", str, manifest)
        self.count: int = field(facts, "count", int, manifest)
        self.key, self.values = shard_file.elements_of(facts, manifest)
        entries = _entries_of(facts, manifest)
        self.files = [ShardFile(os.path.join(folder, name)) for name, _ in entries]
        for file, (_, count) in zip(self.files, entries, strict=True):
            same = (file.key, file.values) == (self.key, self.values)
            if not same or file.id != self.id or file.count != count:
                raise ValueError(f"{file.path}: belongs to another checkpoint than {manifest}")
        rows = sum(count for _, count in entries)
        if rows != self.count:
            raise ValueError(f"{manifest}: expected files with {self.count} rows, got {rows}")
        limit = Limit(folder, sum(file.size for file in self.files), most)
        limit.require_table(-(-rows // tables), 0, self.key, self.values)

    def rounds(self, readers: int) -> int:
        """The most chunks that a reader gets, if reader r takes the files r, r + readers, ..."""
        pieces = [-(-file.count // CHUNK_ROWS) for file in self.files]
        return max(sum(pieces[reader::readers]) for reader in range(readers))

    def chunks(self, numbers: Iterable[int], at_least: int = 0) -> Iterator[tuple[Any, list[Any]]]:
        """Yields (keys, values) of these files in chunks, then empty chunks up to `at_least`."""
        given = 0
        for number in numbers:
            for chunk in self.files[number].chunks():
                given += 1
                yield chunk
        for _ in range(given, at_least):
            yield (
                to_tensor(shard_file.no_rows(self.key), self.key, "keys"),
                [to_tensor(shard_file.no_rows(value), value, "values") for value in self.values],
            )

    def wrong_size(self, size: int) -> ValueError | None:
        """The error if the loaded table has another size, because two files hold equal keys."""
        if size == self.count:
            return None
        return ValueError(f"{self.path}: expected {self.count} distinct keys, got {size}")


def _read_manifest(path: str) -> dict[str, Any]:
    try:
        with open_regular(path) as file:
            text = file.read(shard_file.MAX_JSON + 1)
    except FileNotFoundError:
        raise ValueError(f"{path}: missing; this folder holds no complete checkpoint") from None
    if len(text) > shard_file.MAX_JSON:
        raise ValueError(f"{path}: expected a manifest of at most {shard_file.MAX_JSON} bytes")
    facts = shard_file.parse_facts(text, path)
    if field(facts, "format", int, path) != 1:
        raise ValueError(f"{path}: expected format 1, got {facts['format']}: a later version?")
    if field(facts, "crc32", str, path) != _manifest_sum(facts):
        raise ValueError(f"{path}: damaged: its checksum is wrong")
    return facts


def _entries_of(facts: dict[str, Any], path: str) -> list[tuple[str, int]]:
    """(name, count) of each file. ValueError for a file outside the folder, or listed twice."""
    entries = []
    for entry in field(facts, "files", list, path):
        if not isinstance(entry, dict):
            raise ValueError(f"{path}: expected a name and a count, got {repr(entry)[:80]}")
        entries.append((field(entry, "name", str, path), field(entry, "count", int, path)))
    names = [name for name, _ in entries]
    for name in names:
        if os.path.basename(name) != name or "\0" in name or not name.endswith(_SUFFIX):
            raise ValueError(
                f"{path}: expected the name of a file in its folder, got {name[:80]!r}"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: expected each file once, got one twice")
    return entries


def load_hash_map(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> HashMap:
    """Reads the checkpoint of a distributed table into one HashMap, in this process only.

    Untrusted folders are safe: the table takes at most `max_bytes`, by default in proportion to the
    files' size.

    >>> import tempfile, torch.distributed as dist
    >>> from tensorhash.distributed import DistributedHashMap
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> table, folder = DistributedHashMap(None, 0, "int64", (), "float32", ()), tempfile.mkdtemp()
    >>> indices, inserted = table.insert(np.array([7, 9]), np.float32([1, 2]))
    >>> table.save(folder)
    >>> dist.destroy_process_group()
    >>> load_hash_map(folder).get([9, 8])
    array([2., 0.], dtype=float32)
    """
    found = Checkpoint(path, max_bytes)
    dtypes, shapes = [d for d, _ in found.values], [s for _, s in found.values]
    table = HashMap(found.count, *found.key, value_dtypes=dtypes, value_element_shapes=shapes)
    for keys, values in found.chunks(range(len(found.files))):
        table._table.insert(keys, values)
    wrong = found.wrong_size(table.size())
    if wrong is not None:
        raise wrong
    return table


def load_into(table: Any, path: str | os.PathLike[str], *, max_bytes: int | None = None) -> None:
    """Inserts a checkpoint's entries into any table with HashMap's `insert`.

    Keys that are already there keep their values. All files are read once before the first insert,
    so a damaged file changes nothing, and neither does a checkpoint that does not fit a bounded
    table or one of its shards. The checkpoint's rows take at most `max_bytes`, by default in
    proportion to the files' size.

    >>> import tempfile, torch.distributed as dist
    >>> from tensorhash.distributed import DistributedHashMap
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> table, folder = DistributedHashMap(None, 0, "int64", (), "float32", ()), tempfile.mkdtemp()
    >>> indices, inserted = table.insert(np.array([7, 9]), np.float32([1, 2]))
    >>> table.save(folder)
    >>> dist.destroy_process_group()
    >>> cache = HashMap(0, "int64", (), "float32", ())
    >>> load_into(cache, folder)
    >>> len(cache)
    2
    """
    found = Checkpoint(path, max_bytes)
    everything = range(len(found.files))
    _require_room(table, found, found.chunks(everything))
    for keys, values in found.chunks(everything):
        _require_nothing_evicted(table.insert(keys, list_values=values), found.path)


def _require_room(table: Any, found: Checkpoint, chunks: Iterable[tuple[Any, list[Any]]]) -> None:
    """Reads all chunks; ValueError if a bounded table would have to evict to hold their keys."""
    most = getattr(table, "max_capacity", None)
    # A shard evicts when its own share is full, even if other shards have room.
    shards = table.devices if isinstance(table, ShardedBoundedHashMap) else ()
    fresh = np.zeros(max(1, len(shards)), np.int64)
    for keys, _ in chunks:
        if most is not None:
            new = ~np.asarray(table.contains(keys))
            shard = np.asarray(table.shard_of(keys)) if shards else np.zeros(len(new), np.int64)
            fresh += np.bincount(shard[new], minlength=len(fresh))
    if most is not None and table.size() + fresh.sum() > most:
        raise ValueError(
            f"table: expected room for {fresh.sum()} new keys of {found.path}, "
            f"got max_capacity={most} and {table.size()} keys; make a larger one"
        )
    for number, device in enumerate(shards):
        share, size = table._table.capacity(number), table.get_size(device)
        if size + fresh[number] > share:
            raise ValueError(
                f"table: expected room on {device} for {fresh[number]} new keys of {found.path}, "
                f"got a share of {share} of max_capacity={most} and {size} keys; make a larger "
                f"one, or use a policy that spreads the keys"
            )


def _require_nothing_evicted(result: Any, path: str) -> None:
    """ValueError if `insert` evicted entries: its third result, in tables of unknown limit."""
    evicted = result[2] if isinstance(result, tuple) and len(result) > 2 else None
    if evicted is not None and len(evicted.keys) > 0:
        raise ValueError(
            f"table: expected room for all keys of {path}, but {len(evicted.keys)} row(s) were "
            f"evicted, and the table holds only part of the checkpoint; make a larger one"
        )
