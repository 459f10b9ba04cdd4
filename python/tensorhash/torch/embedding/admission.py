"""Which unseen ids get a row: those seen often enough, or those that a seeded draw picks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorhash._types import NumPyArray
from tensorhash.hash_map import HashMap
from tensorhash.torch.embedding import seeded


class Admission:
    """Admits an id at its `after`-th sighting, and then with this probability per batch."""

    def __init__(self, words: tuple[int, ...], after: int, probability: float, seed: int) -> None:
        if after < 1:
            raise ValueError(f"admit_after: expected 1 or more sightings, got {after}")
        if not 0 < probability <= 1:
            raise ValueError(
                f"admit_probability: expected more than 0 and at most 1, got {probability}"
            )
        self.after = after
        self.probability = probability
        self._seed = seed
        #: How often each id that waits was seen.
        self.seen = HashMap(0, "int64", words, "int64", ())

    def decide(self, ids: NumPyArray, counts: NumPyArray, batch: int) -> NumPyArray:
        """bool [N]: which of these distinct new ids, seen `counts` times now, get a row."""
        admitted = np.ones(len(ids), bool)
        if self.after > 1:
            before: Any = self.seen.get(ids)
            admitted = before + counts >= self.after
        if self.probability < 1:
            admitted &= seeded.chance(ids, self._seed, batch) < self.probability
        return admitted

    def note(self, ids: NumPyArray, counts: NumPyArray, admitted: NumPyArray) -> None:
        """Counts the sightings of the ids that wait, and forgets those that were admitted."""
        if self.after > 1:
            self.seen.accumulate(ids[~admitted], counts[~admitted])
            self.seen.erase(ids[admitted])
