"""FrozenHashEmbedding: the rows of a HashEmbedding as tensors, for serving."""

from __future__ import annotations

import torch

from tensorhash.torch.embedding import _ops
from tensorhash.torch.embedding.layer import require_integers


class FrozenHashEmbedding(torch.nn.Module):
    """What `HashEmbedding.frozen()` returns. Its ids and rows are buffers; it does not train.

    >>> ids, rows = torch.tensor([7, -1]), torch.tensor([[1.0], [2.0]])
    >>> FrozenHashEmbedding(ids, rows, torch.zeros(1))(torch.tensor([-1, 0])).tolist()
    [[2.0], [0.0]]
    """

    ids: torch.Tensor
    rows: torch.Tensor
    oov_row: torch.Tensor

    def __init__(
        self,
        ids: torch.Tensor,
        rows: torch.Tensor,
        oov_row: torch.Tensor,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("ids", ids)
        self.register_buffer("rows", rows)
        self.register_buffer("oov_row", oov_row)
        self.padding_idx = padding_idx

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[*ids.shape, dim]: the row of each id."""
        require_integers(ids)
        ids = ids.long()
        out: torch.Tensor = _ops.frozen(ids, self.ids, self.rows, self.oov_row)
        if self.padding_idx is not None:
            out = torch.where((ids == self.padding_idx)[..., None], torch.zeros_like(out), out)
        return out
