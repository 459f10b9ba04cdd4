"""get: values per key, with a default that is a scalar, a row or one row per key."""

import numpy as np
import pytest
from oracle import same, snapshot

import tensorhash


def small():
    table = tensorhash.HashMap(10, "int64", (), "float32", (2,))
    table.insert([1, 2, 3], [[1, 10], [2, 20], [3, 30]])
    return table


def two_columns():
    table = tensorhash.HashMap(
        0, "int64", (), value_dtypes=("int64", "uint8"), value_element_shapes=((), (3,))
    )
    table.insert([1, 2], ([10, 20], [[1, 1, 1], [2, 2, 2]]))
    return table


def test_missing_keys_give_zeros():
    same(small().get([3, 9, 1]), np.float32([[3, 30], [0, 0], [1, 10]]))


@pytest.mark.parametrize("default", [-1, -1.0, np.float32(-1), np.int64(-1)])
def test_a_number_fills_the_rows_of_missing_keys(default):
    same(small().get([3, 9], default=default), np.float32([[3, 30], [-1, -1]]))


@pytest.mark.parametrize("default", [[7, 8], (7, 8), np.float32([7, 8])])
def test_a_row_is_the_default_of_missing_keys(default):
    expected = np.float32([[7, 8], [3, 30], [7, 8]])
    same(small().get([9, 3, 8], default=default), expected)


def test_one_row_per_key_is_the_default_of_missing_keys():
    default = np.arange(6, dtype=np.float32).reshape(3, 2)
    same(small().get([9, 3, 8], default=default), np.float32([[0, 1], [3, 30], [4, 5]]))
    same(small().get([9, 3, 8], default.tolist()), np.float32([[0, 1], [3, 30], [4, 5]]))
    same(small().get([9, 3, 8], default[::-1]), np.float32([[4, 5], [3, 30], [0, 1]]))


def test_a_default_is_unambiguous_if_keys_and_row_elements_are_equally_many():
    # Two keys and rows of two: [2] is a row, [2, 2] one row per key.
    same(small().get([8, 9], default=np.float32([7, 8])), np.float32([[7, 8], [7, 8]]))
    same(
        small().get([8, 9], default=np.float32([[1, 2], [3, 4]])),
        np.float32([[1, 2], [3, 4]]),
    )


def test_scalar_elements_take_one_default_per_key():
    table = tensorhash.HashMap.from_items(np.array([1, 2]), np.array([10, 20]))
    same(table.get([2, 5, 6], default=np.array([-1, -2, -3])), np.array([20, -2, -3]))
    same(table.get([2, 5, 6], default=[-1, -2, -3]), np.array([20, -2, -3]))
    same(table.get([2, 5], default=-7), np.array([20, -7]))


def test_several_columns_give_a_tuple():
    whole, colors = two_columns().get([2, 7])
    same(whole, np.array([20, 0]))
    same(colors, np.uint8([[2, 2, 2], [0, 0, 0]]))


def test_several_columns_take_a_tuple_of_defaults():
    whole, colors = two_columns().get([2, 7], default=(-1, [5, 6, 7]))
    same(whole, np.array([20, -1]))
    same(colors, np.uint8([[2, 2, 2], [5, 6, 7]]))
    whole, colors = two_columns().get([2, 7], default=(np.array([8, 9]), 255))
    same(whole, np.array([20, 9]))
    same(colors, np.uint8([[2, 2, 2], [255, 255, 255]]))


@pytest.mark.parametrize(
    "default",
    [[1, 2, 3], np.zeros((2, 3), np.float32), np.zeros((4, 2), np.float32), np.zeros((3, 2, 2))],
)
def test_a_default_of_another_shape_is_refused(default):
    with pytest.raises((ValueError, TypeError), match="default"):
        small().get([1, 8, 9], default=default)


def test_a_default_of_another_dtype_is_a_type_error():
    with pytest.raises(TypeError, match="default.*float32.*float64"):
        small().get([1], default=np.zeros(2))


def test_a_default_that_does_not_fit_is_refused():
    table = two_columns()
    for bad in ((0, 256), (0, -1), (2**63, 0)):
        with pytest.raises(ValueError, match="default"):
            table.get([9], default=bad)
    with pytest.raises(TypeError, match="default"):
        table.get([9], default=(1.5, 0))
    for bad in (5, (1,), (1, 2, 3)):
        with pytest.raises(ValueError, match="default"):
            table.get([9], default=bad)


def test_get_changes_nothing():
    table = small()
    before = snapshot(table)
    result = table.get([1, 9], default=5)
    result[:] = 0
    assert snapshot(table) == before


def test_a_big_batch_of_hits_and_misses():
    rng = np.random.default_rng(0)
    keys = rng.permutation(100_000)[:50_000]
    table = tensorhash.HashMap.from_items(keys, keys[:, None] * np.array([1, 2, 3]))
    asked = rng.integers(0, 100_000, 200_000)
    default = rng.integers(0, 9, (200_000, 3))
    expected = np.where(np.isin(asked, keys)[:, None], asked[:, None] * [1, 2, 3], default)
    same(table.get(asked, default=default), expected)
