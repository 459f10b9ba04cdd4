"""Which rank owns a key: balanced, equal for equal keys, independent of the table's hash."""

import numpy as np
import pytest

import tensorhash
from tensorhash import _core


def owners_of(keys, ranks):
    element = keys.dtype.name, keys.shape[1:]
    return np.asarray(_core.rank_of_keys(keys, element, ranks))


def crowding(counts):
    """Chi-squared per degree of freedom: about 1 for a random spread."""
    mean = counts.mean()
    return ((counts - mean) ** 2 / mean).sum() / (len(counts) - 1)


STRUCTURED = {
    "sequence": np.arange(200_000),
    "shifted": np.arange(200_000) << 40,
    "stride of 16": np.arange(200_000) * 16,
    "negative": -np.arange(200_000),
    "floats": np.arange(200_000).astype(np.float64),
    "grid": np.stack(np.meshgrid(*[np.arange(-29, 29)] * 3), -1).reshape(-1, 3).astype(np.int32),
    "bytes": (np.arange(200_000)[:, None] >> np.arange(23) & 1).astype(np.uint8),
}


@pytest.mark.parametrize("ranks", [2, 3, 4, 64])
@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_keys_are_spread_evenly(name, ranks):
    counts = np.bincount(owners_of(STRUCTURED[name], ranks), minlength=ranks)
    assert len(counts) == ranks
    assert np.abs(counts - counts.mean()).max() < 5 * counts.mean() ** 0.5


# RankRouting in tests/unit/ranks checks by probe lengths that the keys of a rank do not crowd a
# part of its table, for the rule that FROZEN freezes.
@pytest.mark.parametrize("ranks", [2, 3, 4, 64])
def test_the_keys_of_one_rank_fill_shards_evenly(ranks):
    keys = np.arange(1_000_000)
    mine = keys[owners_of(keys, ranks) == ranks - 1]
    shards = [f"cpu:{i}" for i in range(16)]
    table = tensorhash.ShardedHashMap(0, "int64", (), "int64", (), devices=shards)
    assert crowding(np.bincount(table.shard_of(mine), minlength=16)) < 2.5


def test_equal_keys_have_one_owner():
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0], [0.0, 0.0], [-0.0, -0.0]])
    assert len(set(owners_of(zeros, 997).tolist())) == 1
    quiet = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF], np.uint32)
    nans = quiet.view(np.float32)
    assert len(set(owners_of(nans, 997).tolist())) == 1
    # The same bits as integers are different keys.
    assert len(set(owners_of(quiet, 997).tolist())) > 1


def test_the_rule_is_frozen():
    # Checkpoints store the rule's name: to change these numbers, change POLICY of shard_file.py
    # too.
    assert owners_of(np.arange(12), 8).tolist() == FROZEN
    assert owners_of(np.empty((0, 3), np.int32), 8).tolist() == []


FROZEN = [5, 6, 7, 5, 5, 1, 7, 3, 6, 2, 3, 7]
