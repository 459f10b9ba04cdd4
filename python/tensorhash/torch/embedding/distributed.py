"""DistributedHashEmbedding: a HashEmbedding over the ranks of a process group."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from tensorhash._arguments import integer
from tensorhash.distributed.calls import attempt
from tensorhash.distributed.exchange import Exchange
from tensorhash.torch.embedding.distributed_rows import DistributedRows
from tensorhash.torch.embedding.layer import EmbeddingOptions, flat_strings, string_of
from tensorhash.torch.embedding.modules import HashEmbedding
from tensorhash.torch.embedding.string_keys import StringKeys
from tensorhash.torch.embedding.table_rows import TableRows

if TYPE_CHECKING:
    from typing_extensions import Unpack

_REFUSED = ("capacity", "max_capacity", "admit_after", "admit_probability")


class DistributedHashEmbedding(HashEmbedding):
    """A HashEmbedding with its rows spread over ranks, beside DistributedDataParallel.

    A hash of the id decides which rank owns its row. Every forward and every step of its
    `TableOptimizer` is collective: all ranks call them in the same order, each with its own batch,
    which may be empty. Gradients are the mean over ranks, as DistributedDataParallel's. So a run on
    any number of ranks trains what one rank would, up to rounding. The options are HashEmbedding's,
    without capacities and admission; without `seed`, rank 0's counts. With `strings=True`, the key
    of a row is a hash of its string, two int64 numbers, and first rows are HashEmbedding's.

    >>> import torch.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = DistributedHashEmbedding(2, seed=1)
    >>> layer(torch.tensor([7, 2**60])).shape
    torch.Size([2, 2])
    >>> dist.destroy_process_group()
    """

    _rows: DistributedRows
    _strings: StringKeys | None

    def __init__(
        self, dim: int, process_group: Any = None, **options: Unpack[EmbeddingOptions]
    ) -> None:
        for name in _REFUSED:
            if name in options:
                raise ValueError(f"{name}: a distributed embedding has no such option")
        device = str(options.get("device", "cpu"))
        if not device.startswith("cpu"):
            raise ValueError(
                f"device: a distributed embedding is on the CPU only, got {device!r}; "
                f"leave device out and pass ids.cpu()"
            )
        self.__dict__["_exchange"] = exchange = Exchange(process_group)
        seed = options.get("seed")
        mine = (
            int(torch.randint(2**62, (), device="cpu"))
            if seed is None
            else integer(seed, "seed", None)
        )
        mine = (mine + 2**63) % 2**64 - 2**63  # first rows depend on it modulo 2^64
        given = bool(options.pop("strings", False))
        dtype = options.get("dtype") or torch.get_default_dtype()
        step = f"DistributedHashEmbedding(dim={dim}, dtype={dtype}, strings={given})"
        options["seed"] = exchange.agree(step, None, [mine]).sums[0]
        padding = options.pop("padding_idx", None) if given else None
        self.__dict__["_strings"] = strings = StringKeys() if given else None
        if strings is not None:
            self.__dict__["_words"] = strings.WORDS
        super().__init__(dim, **options)
        del self.__dict__["_exchange"]  # the rows have it now
        self._padding_key: torch.Tensor | None = None
        if strings is not None and padding is not None:
            self.padding_idx = string_of(padding)
            self._padding_key = strings.keys([padding], remember=False)  # int64 [1, 2]

    def _table_rows(self, given: Any, *shared: Any) -> TableRows:
        norm = None if self.max_norm is None else (self.max_norm, self.norm_type)
        return DistributedRows(self.__dict__["_exchange"], norm, *shared)

    def _keys(self, ids: Any) -> torch.Tensor:
        keys: torch.Tensor
        keys, error = attempt(lambda: self._own_keys(ids))
        self._rows.share(error, "train" if self.training else "read")
        return keys

    def _own_keys(self, ids: Any) -> torch.Tensor:
        if self._strings is None:
            return super()._keys(ids)
        flat, shape = flat_strings(ids)
        keys = self._strings.keys(flat, remember=self.training)
        return keys.view(*shape, *self._words)

    def _is_padding(self, keys: torch.Tensor) -> torch.Tensor | None:
        if self._padding_key is None:
            return super()._is_padding(keys)
        return (keys == self._padding_key).all(1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint: a folder with one file per rank. Collective.

        A process that is killed leaves the old checkpoint or the new one.
        """
        self._rows.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Takes the rows of a checkpoint that any number of ranks wrote. Collective.

        Make the TableOptimizer first, so that the layer has its columns.
        """
        self._rows.load(path)

    def frozen(self) -> NoReturn:
        """Always raises: no rank has all rows."""
        raise ValueError(
            "frozen: each rank has only its own rows; load the checkpoint in one "
            "process with tensorhash.distributed.load_hash_map"
        )
