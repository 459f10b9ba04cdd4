"""Hash embeddings: torch layers that take any numbers or strings as ids."""

from tensorhash.torch.embedding.collection import HashEmbeddingBagCollection
from tensorhash.torch.embedding.distributed import DistributedHashEmbedding
from tensorhash.torch.embedding.frozen import FrozenHashEmbedding
from tensorhash.torch.embedding.modules import HashEmbedding, HashEmbeddingBag
from tensorhash.torch.embedding.optimizer import TableOptimizer

__all__ = [
    "DistributedHashEmbedding",
    "FrozenHashEmbedding",
    "HashEmbedding",
    "HashEmbeddingBag",
    "HashEmbeddingBagCollection",
    "TableOptimizer",
]
