"""Learns ratings of a stream: new users and items get their vectors when they arrive.

A rating is the product of a hidden vector of the user and one of the item, plus noise. One
Adagrad step per batch, inside the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import tensorhash
from tensorhash._types import NumPyArray
from tensorhash.cli.demo.stages import Timing, timed

WIDTH, BATCH, BATCHES = 8, 8192, 150
NOISE = 0.2
_RATE = 0.3


class Learned(NamedTuple):
    """The course of the training, one number per batch."""

    errors: NumPyArray  #: root mean square error before the step
    ids: NumPyArray  #: users and items in the tables


class RatingBatch(NamedTuple):
    """Users, items, and how each user rates the item."""

    users: NumPyArray
    items: NumPyArray
    ratings: NumPyArray


def stream(seed: int = 3) -> Iterator[RatingBatch]:
    """Batches of ratings. The number of known users and items grows with each batch."""
    rng = np.random.default_rng(seed)
    users = rng.normal(size=(12_000, WIDTH)) / WIDTH**0.25
    items = rng.normal(size=(2_000, WIDTH)) / WIDTH**0.25
    # Ids are arbitrary 64-bit numbers, not rows.
    user_ids = rng.integers(-(2**63), 2**63, len(users))
    item_ids = rng.integers(-(2**63), 2**63, len(items))
    for batch in range(BATCHES):
        share = 0.25 + 0.75 * batch / BATCHES
        user = (rng.random(BATCH) ** 1.5 * len(users) * share).astype(np.int64)
        item = (rng.random(BATCH) ** 1.5 * len(items) * share).astype(np.int64)
        exact = (users[user] * items[item]).sum(axis=1)
        ratings = exact + rng.normal(scale=NOISE, size=BATCH)
        yield RatingBatch(user_ids[user], item_ids[item], ratings.astype(np.float32))


_STARTS = (np.random.default_rng(0).normal(size=(4096, WIDTH)) * 0.2).astype(np.float32)


def start(ids: NumPyArray) -> NumPyArray:
    """The first vector of an id: small numbers that depend on the id alone."""
    vectors: NumPyArray = _STARTS[ids & 4095]
    return vectors


def learn() -> tuple[Learned, Timing]:
    """Trains with tables and, for comparison, with a dict and NumPy arrays."""
    batches = list(stream())
    ours, seconds = timed(lambda: _with_tables(batches), 1)
    theirs, numpy = timed(lambda: _with_a_dict(batches), 1)
    if not np.allclose(ours.errors, theirs.errors, atol=0.02):
        raise RuntimeError("the demo failed: the errors of tensorhash and NumPy differ")
    name = f"embedding: {BATCHES} steps of Adagrad"
    return ours, Timing(name, BATCH * BATCHES, seconds, numpy)


def _with_tables(batches: list[RatingBatch]) -> Learned:
    adagrad = tensorhash.optim.Adagrad(lr=_RATE)
    users, items = (
        tensorhash.HashMap(0, "int64", (), **adagrad.columns("float32", (WIDTH,))) for _ in range(2)
    )
    errors, ids = [], []
    for batch in batches:
        first_u, first_i = start(batch.users), start(batch.items)
        u = np.asarray(users.get(batch.users, default=[first_u, 0])[0])
        i = np.asarray(items.get(batch.items, default=[first_i, 0])[0])
        error = (u * i).sum(axis=1) - batch.ratings
        _step(users, batch.users, error[:, None] * i, adagrad, first_u)
        _step(items, batch.items, error[:, None] * u, adagrad, first_i)
        errors.append(np.sqrt(np.mean(error**2)))
        ids.append(len(users) + len(items))
    return Learned(np.array(errors), np.array(ids))


def _step(
    table: tensorhash.HashMap,
    ids: NumPyArray,
    gradients: NumPyArray,
    optimizer: tensorhash.optim.Adagrad,
    first: NumPyArray,
) -> None:
    """One step; ids that the table does not have are inserted with their first vectors."""
    table.update(ids, gradients, optimizer, missing="insert", duplicates="sum", initial=first)


class _DictTable:
    """What people write today: a dict from ids to rows of NumPy arrays."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.weights = np.empty((1024, WIDTH), np.float32)
        self.squares = np.zeros((1024, WIDTH), np.float32)

    def find(self, ids: NumPyArray) -> NumPyArray:
        """The row of each id; new ids get new rows."""
        known = len(self.rows)
        at = np.array([self.rows.setdefault(one, len(self.rows)) for one in ids.tolist()])
        if len(self.rows) > len(self.weights):
            self.weights = np.resize(self.weights, (2 * len(self.rows), WIDTH))
            larger = np.zeros_like(self.weights)
            larger[: len(self.squares)] = self.squares
            self.squares = larger
        fresh = at >= known
        self.weights[at[fresh]] = start(ids[fresh])
        return at

    def step(self, at: NumPyArray, gradients: NumPyArray) -> None:
        """One Adagrad step with the sum of the gradients of equal ids."""
        rows, inverse = np.unique(at, return_inverse=True)
        total = np.zeros((len(rows), WIDTH), np.float32)
        np.add.at(total, inverse, gradients)
        self.squares[rows] += total**2
        self.weights[rows] -= _RATE * total / (np.sqrt(self.squares[rows]) + 1e-10)


def _with_a_dict(batches: list[RatingBatch]) -> Learned:
    users, items = _DictTable(), _DictTable()
    errors, ids = [], []
    for batch in batches:
        at_u, at_i = users.find(batch.users), items.find(batch.items)
        u, i = users.weights[at_u], items.weights[at_i]
        error = (u * i).sum(axis=1) - batch.ratings
        users.step(at_u, error[:, None] * i)
        items.step(at_i, error[:, None] * u)
        errors.append(np.sqrt(np.mean(error**2)))
        ids.append(len(users.rows) + len(items.rows))
    return Learned(np.array(errors), np.array(ids))
