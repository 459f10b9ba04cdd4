"""HashEmbeddingBagCollection: the bags of several features from one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from tensorhash.torch.embedding import seeded
from tensorhash.torch.embedding.layer import EmbeddingOptions, HashLayer
from tensorhash.torch.embedding.modules import MODES, bag_rows, wide_weights

if TYPE_CHECKING:
    from typing_extensions import Unpack


class HashEmbeddingBagCollection(HashLayer):
    """One bag per feature and sample, from one table: a batch costs one lookup.

    `features` names the features in the order of the lengths, or maps each to the name of its
    table; features with the same table share rows. The key of a row is the pair of its table's name
    (a hash of it) and its id. The options are HashEmbedding's, without `strings`.

    >>> layer = HashEmbeddingBagCollection(["user", "item"], 1, mode="sum", init="zeros", oov=1.0)
    >>> values = torch.tensor([7, 8, 9, 7])
    >>> lengths = torch.tensor([[2, 0], [1, 1]])  # of two samples, for each feature
    >>> layer(values, lengths)["item"].shape, len(layer)
    (torch.Size([2, 1]), 4)
    """

    _words = (2,)
    spaces: torch.Tensor

    def __init__(
        self,
        features: Sequence[str] | Mapping[str, str],
        dim: int,
        mode: str = "mean",
        **options: Unpack[EmbeddingOptions],
    ) -> None:
        if mode not in MODES:
            raise ValueError(f'mode: expected "sum", "mean" or "max", got {mode!r}')
        if options.get("strings"):
            raise ValueError("strings: a collection takes int64 ids; number the strings first")
        named = dict(features) if isinstance(features, Mapping) else {one: one for one in features}
        if not named or len(named) != len(features):
            raise ValueError(f"features: expected distinct names, got {features!r}")
        super().__init__(dim, **options)
        self.features = list(named)
        self.tables = list(named.values())
        self.mode = mode
        hashes = seeded.hash_strings([name.encode() for name in self.tables])
        spaces = torch.from_numpy(hashes).to(self.oov_row.device)
        self.register_buffer("spaces", spaces, persistent=False)

    def forward(
        self,
        values: torch.Tensor,
        lengths: torch.Tensor,
        per_sample_weights: torch.Tensor | None = None,
        scores: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """{feature: [B, dim]}. `lengths` is [F, B]: how many values each bag has.

        Values come feature by feature, and within a feature sample by sample.
        """
        ids = self._keys(values)
        count = len(self.features)
        flat = _checked_lengths(lengths, count, ids)
        ends = flat.cumsum(0)
        keys = torch.stack([self._spaces_of(ids, ends), ids.reshape(-1)], 1)
        looked = self._look_up(keys, scores)
        table, index, padding = bag_rows(looked, self._is_padding(keys))
        bags = torch.nn.functional.embedding_bag(
            index,
            table,
            torch.cat([flat.new_zeros(1), ends]),
            mode=self.mode,
            per_sample_weights=wide_weights(per_sample_weights, looked.rows),
            include_last_offset=True,
            padding_idx=padding,
        )
        parts = bags.to(looked.rows.dtype).view(count, -1, self.dim)
        return {name: parts[i] for i, name in enumerate(self.features)}

    def _spaces_of(self, ids: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """The first word of each key. The values of a feature go up to the end of its last bag."""
        bags = ends.shape[0] // len(self.features)
        last = ends[bags - 1 :: bags].contiguous() if bags else ends.new_zeros(len(self.features))
        rows = torch.arange(ids.numel(), device=ids.device)
        feature = torch.searchsorted(last, rows, right=True)
        # Wrong lengths must not read beyond the names.
        return self.spaces[feature.clamp(max=len(self.features) - 1)]

    def extra_repr(self) -> str:
        """The text in parentheses that print(module) shows."""
        return f"{super().extra_repr()}, features={self.features}, mode={self.mode!r}"


def _checked_lengths(lengths: torch.Tensor, features: int, values: torch.Tensor) -> torch.Tensor:
    """int64 [F * B]; ValueError unless they are counts of all values. torch does not look."""
    if lengths.is_floating_point() or lengths.numel() % features:
        raise ValueError(
            f"lengths: expected integers in {features} rows, one per feature, got {lengths.dtype} "
            f"of shape {tuple(lengths.shape)}"
        )
    flat = lengths.reshape(-1).long()
    if torch.compiler.is_compiling():
        right = (flat >= 0).all() & (flat.sum() == values.numel())
        torch._assert_async(right, "lengths: expected the counts of all values")
    elif bool((flat < 0).any()) or int(flat.sum()) != values.numel():
        smallest = int(flat.min()) if len(flat) else 0
        raise ValueError(
            f"lengths: expected numbers from 0 on with the sum {values.numel()}, the number of "
            f"values; got the sum {int(flat.sum())} and {smallest} as the smallest"
        )
    return flat
