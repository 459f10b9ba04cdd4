"""HashEmbedding and HashEmbeddingBag: torch.nn.Embedding and EmbeddingBag for any ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tensorhash.torch._checks import wide
from tensorhash.torch.embedding.frozen import FrozenHashEmbedding
from tensorhash.torch.embedding.layer import EmbeddingOptions, HashLayer, Looked
from tensorhash.torch.embedding.table_rows import limit_norm

if TYPE_CHECKING:
    from typing_extensions import Unpack

MODES = ("sum", "mean", "max")


class HashEmbedding(HashLayer):
    """Rows of `dim` floats for any int64 ids, as torch.nn.Embedding without a number of rows.

    In training, an id without a row gets one. In eval, it gives zeros, or `oov`. An id's first row
    depends only on the layer's seed and the id. `TableOptimizer` trains the rows in their table;
    with `capacity`, they are a parameter for torch.optim. Options:

    - `capacity`: the rows are a parameter of this size, with sparse gradients. It never grows.
    - `max_capacity`, `eviction`: the table evicts the least recently used id ("lru"), the one seen
      least often ("lfu"), or the one with the lowest score ("score", from `forward(ids, scores)`).
    - `padding_idx`: this id always gives zeros. `max_norm`, `norm_type`: as in torch.nn.Embedding.
    - `init`: "uniform" (up to 1 / sqrt(dim)), "normal" (deviation 1), "zeros", or a function from
      ids to rows. `init_scale` replaces the number. `seed`: by default from torch's generator.
    - `oov`: a number or a row for ids without a row.
    - `admit_after`, `admit_probability`: an id gets a row at this sighting, or with this chance per
      batch. Until then it gives `oov`.
    - `strings`: ids are strings. `dtype`, `device`: as in torch.

    >>> layer = HashEmbedding(2, seed=1)
    >>> layer(torch.tensor([-7, 2**60, -7])).shape, len(layer)
    (torch.Size([3, 2]), 2)
    >>> layer.eval()(torch.tensor([5])).tolist()
    [[0.0, 0.0]]
    """

    def forward(self, ids: Any, scores: torch.Tensor | None = None) -> torch.Tensor:
        """[*ids.shape, dim]: the row of each id."""
        keys = self._keys(ids)
        looked = self._look_up(keys.reshape(-1, *self._words), scores)
        rows = looked.rows
        if looked.place is not None:
            # Wide, because torch adds the gradients of equal ids in the dtype of the rows.
            rows = torch.nn.functional.embedding(looked.place, wide(rows)).to(rows.dtype)
        return rows.view(*keys.shape[: keys.ndim - len(self._words)], self.dim)

    def frozen(self) -> FrozenHashEmbedding:
        """A copy for serving: its ids and rows are tensors, so that torch.export saves them.

        >>> layer = HashEmbedding(2, init="zeros", oov=1.0)
        >>> rows = layer(torch.tensor([3]))
        >>> layer.frozen()(torch.tensor([3, 4])).tolist()
        [[0.0, 0.0], [1.0, 1.0]]
        """
        if self._rows.strings is not None:
            raise ValueError("strings: a frozen embedding takes int64 ids; keep the StringIndex")
        rows = self.rows().clone()
        if self.max_norm is not None:
            rows = limit_norm(rows, self.max_norm, self.norm_type)
        return FrozenHashEmbedding(self.ids().clone(), rows, self.oov_row.clone(), self._padding)


class HashEmbeddingBag(HashLayer):
    """Sums, means or maxima of rows, as torch.nn.EmbeddingBag, for any int64 ids.

    `forward(ids, offsets, per_sample_weights)` takes bags as torch.nn.EmbeddingBag does: [B, L], or
    [N] with offsets. Ids equal to `padding_idx` do not count. The options are HashEmbedding's.

    >>> layer = HashEmbeddingBag(2, mode="sum", init=lambda ids: ids[:, None].float().expand(-1, 2))
    >>> layer(torch.tensor([1, 2, 30]), torch.tensor([0, 2])).tolist()
    [[3.0, 3.0], [30.0, 30.0]]
    """

    def __init__(
        self,
        dim: int,
        mode: str = "mean",
        *,
        include_last_offset: bool = False,
        **options: Unpack[EmbeddingOptions],
    ) -> None:
        if mode not in MODES:
            raise ValueError(f'mode: expected "sum", "mean" or "max", got {mode!r}')
        super().__init__(dim, **options)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(
        self,
        ids: Any,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
        scores: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[B, dim]: one row per bag."""
        keys = self._keys(ids)
        looked = self._look_up(keys.reshape(-1), scores)
        table, index, padding = bag_rows(looked, self._is_padding(keys.reshape(-1)))
        bags = torch.nn.functional.embedding_bag(
            index.view(keys.shape),
            table,
            offsets,
            mode=self.mode,
            per_sample_weights=wide_weights(per_sample_weights, looked.rows),
            include_last_offset=self.include_last_offset,
            padding_idx=padding,
        )
        return bags.to(looked.rows.dtype)

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        return f"{super().extra_repr()}, mode={self.mode!r}"


def bag_rows(
    looked: Looked, is_padding: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, int | None]:
    """(wide rows, the row of each id, the row of padding) for torch's embedding_bag."""
    rows, index, padding = wide(looked.rows), looked.place, looked.padding
    if index is not None:
        return rows, index, padding
    index = torch.arange(rows.shape[0], device=rows.device)
    if is_padding is None:
        return rows, index, None
    padded = torch.cat([rows, rows.new_zeros(1, rows.shape[1])])
    return padded, torch.where(is_padding, rows.shape[0], index), rows.shape[0]


def wide_weights(weights: torch.Tensor | None, rows: torch.Tensor) -> torch.Tensor | None:
    """Weights of the rows' dtype as those of `bag_rows`; others are left for torch to refuse."""
    return wide(weights) if weights is not None and weights.dtype == rows.dtype else weights
