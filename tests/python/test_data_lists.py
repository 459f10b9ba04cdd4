"""Lists and empty columns have no dtype of their own; frames must name their columns alike."""

import numpy as np
import pytest
from oracle import refused, same

import tensorhash as th
from tensorhash.data import GroupBy, JoinIndex, factorize, group_by, index_of, isin, join

SOME = (
    np.int8([1, 2, 2]),
    np.int32([1, 2, 2]),
    np.uint64([1, 2, 2]),
    np.float32([1, 2, 2]),
    np.array([1.0, 2.0, 2.0]),
)


@pytest.mark.parametrize("array", SOME, ids=lambda array: array.dtype.name)
def test_a_list_takes_the_dtype_of_the_other_side(array):
    same(isin(array, [2, 9]), np.array([False, True, True]))
    same(isin([2, 9], array), np.array([True, False]))
    same(index_of(array, [2, 9]), np.array([1, -1]))
    same(index_of([2, 9, 1], array), np.array([2, 0, 0]))
    same(join([2, 9], array).right, np.array([1, 2]))
    same(join(array, [2, 9], "left").right, np.array([-1, 0, 0]))
    same(JoinIndex(array).count(range(3)), np.array([0, 1, 2]))
    with_words = isin((array, np.array(["a", "b", "c"])), (array[1:2], np.array(["b"])))
    same(with_words, np.array([False, True, False]))


def test_a_number_that_does_not_fit_is_named():
    refused(lambda: isin(np.int8([1]), [1, 300]), "test_elements: row 1: 300 does not fit int8")
    refused(lambda: isin(np.array([1]), [0.5]), "test_elements: row 0", "int64", "0.5")
    refused(lambda: join([2**53 + 1], np.array([1.0])), "left: row 0", "float64")
    refused(lambda: index_of(np.int32([1]), np.int64([1])), "queries: expected int32, got int64")
    refused(lambda: index_of([1], ["a"]), "queries: expected int64, got strings")
    refused(lambda: isin([1, 2], np.ones((3, 2), int)), "elements: expected shape (N, 2), got (2,)")


def test_integers_beside_floats_in_two_lists():
    same(isin([1, 2], [2.0, 0.5]), np.array([False, True]))
    same(isin([2.0, 0.5], [1, 2]), np.array([True, False]))
    same(join([1, 2], [2.0]).left, np.array([1]))


EMPTY = ([], (), np.array([], object), range(0))
FULL = (
    [1, 2],
    [2**53 + 1],
    np.int8([1, 2]),
    np.zeros((2, 3), np.float32),
    ["a", "b"],
    np.array(["a", "b"]),
    np.array([b"a", b"b"]),
    np.array(["a", "b"], object),
    np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
)


@pytest.mark.parametrize("empty", EMPTY, ids=["list", "tuple", "object", "range"])
@pytest.mark.parametrize("full", FULL, ids=range(len(FULL)))
def test_an_empty_list_goes_with_everything(empty, full):
    rows = np.arange(len(full))
    none = np.full(len(full), -1)
    same(isin(full, empty), np.zeros(len(full), bool))
    same(isin(empty, full), np.zeros(0, bool))
    same(index_of(empty, full), none)
    assert index_of(full, empty).shape == (0,)
    same(join(full, empty, "left").left, rows)
    same(join(empty, full, "full").right, rows)
    assert len(join(empty, empty).left) == 0


@pytest.mark.parametrize("empty", EMPTY, ids=["list", "tuple", "object", "range"])
def test_empty_keys_alone(empty):
    assert len(group_by(empty).agg(rows="count")["rows"]) == 0
    assert len(factorize(empty).codes) == 0
    if not isinstance(empty, range):
        assert len(th.StringIndex().insert(empty)) == 0


def test_lists_in_a_stream_take_the_dtypes_of_the_first_batch():
    stream = GroupBy(total=("price", "sum"))
    stream.update([], price=[])  # its dtypes are still open
    stream.update(np.int32([7, 3]), price=np.array([1.5, 2.0]))
    stream.update([7], price=[4])
    stream.update([], price=[])
    same(stream.result()["key"], np.int32([7, 3]))
    same(stream.result()["total"], np.array([5.5, 2.0]))
    refused(lambda: stream.update([2**40], price=[1]), "keys: row 0", "int32")
    words = GroupBy(rows="count")
    words.update([])
    words.update(["a", "b", "a"])
    words.merge(stream_of([]))
    assert words.result()["rows"].tolist() == [2, 1]


def stream_of(keys):
    stream = GroupBy(rows="count")
    stream.update(keys)
    return stream


def test_a_name_that_update_needs_is_refused_at_once():
    refused(lambda: GroupBy(total=("keys", "sum")), "total", "'keys'")


def test_frames_with_their_columns_in_another_order_are_refused():
    """Columns match by position, so a swap would be silently wrong."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [2, 1]})
    swapped, other = frame[["b", "a"]], frame.rename(columns={"a": "x", "b": "y"})
    refused(lambda: join(frame, swapped), "left: expected the columns in the order b, a, got a, b")
    refused(lambda: isin(frame, swapped), "elements: expected the columns in the order")
    same(join(frame, other).right, np.array([0, 1]))  # other names: by position
    stream = GroupBy(rows="count")
    stream.update(frame)
    for wrong in (swapped, other):
        refused(lambda wrong=wrong: stream.update(wrong), "keys: expected the columns a, b")
    refused(lambda: stream.update([1]), "a frame or a tuple of columns", "got one array")
    refused(lambda: stream.merge(stream_of(other)), "keys: expected the columns a, b")
    assert stream.result()["rows"].tolist() == [1, 1]
