"""unique: distinct rows in order of first occurrence, against numpy.unique."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle import KEY_DTYPES, first_occurrence, same

import tensorhash

unique = tensorhash.unique


def check_unique(array):
    first, inverse, counts = first_occurrence(array)
    rows, got_first, got_inverse, got_counts = unique(
        array, return_index=True, return_inverse=True, return_counts=True
    )
    same(rows, array[first])
    same(got_first, first.astype(np.int64))
    same(got_inverse, inverse.astype(np.int64))
    same(got_counts, counts.astype(np.int64))
    same(rows[got_inverse], array)


@given(
    hnp.arrays(
        st.sampled_from([np.dtype(name) for name in KEY_DTYPES if "float" not in name]),
        st.one_of(
            hnp.array_shapes(min_dims=1, max_dims=1, min_side=0, max_side=30),
            hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=6),
        ),
        elements=st.integers(0, 1),
    )
)
def test_small_arrays_of_every_dtype_agree_with_numpy(array):
    check_unique(array)


@pytest.mark.parametrize("width", [None, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "float64"])
def test_big_arrays_agree_with_numpy(dtype, width):
    shape = (60_000,) if width is None else (60_000, width)
    check_unique(np.random.default_rng(0).integers(0, 7, shape).astype(dtype))


def test_only_requested_arrays_are_returned_in_numpys_order():
    array = np.array([3, 1, 3, 2, 1])
    rows, index, inverse, counts = [3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1], [2, 2, 1]
    assert unique(array).tolist() == rows
    for wanted in range(1, 8):
        flags = [bool(wanted & bit) for bit in (1, 2, 4)]
        results = unique(array, *flags)
        extras = [e for e, flag in zip((index, inverse, counts), flags, strict=True) if flag]
        assert isinstance(results, tuple)
        assert [result.tolist() for result in results] == [rows, *extras]
    named = unique(array, return_counts=True, return_index=True)
    assert [result.tolist() for result in named] == [rows, index, counts]


def test_float_rows_compare_canonically_and_keep_their_first_form():
    array = np.array([[-0.0], [0.0], [np.nan], [1.0], [-np.nan]])
    rows, inverse = unique(array, return_inverse=True)
    assert rows.tobytes() == array[[0, 2, 3]].tobytes()
    same(inverse, np.array([0, 0, 1, 2, 1]))


def test_strided_big_endian_and_read_only_arrays():
    grid = np.random.default_rng(1).integers(0, 3, (500, 6))
    for array in (grid[:, ::2], grid[::-1], grid.T[:3].T, grid.astype(">i8")):
        first, _, _ = first_occurrence(np.ascontiguousarray(array, dtype=np.int64))
        same(unique(array), np.ascontiguousarray(array, dtype=np.int64)[first])
    fixed = grid.copy()
    fixed.flags.writeable = False
    check_unique(fixed)


def test_lists_and_other_frameworks():
    assert unique([3, 1, 3]).tolist() == [3, 1]
    assert unique([[1, 2], [1, 2], [0, 0]]).tolist() == [[1, 2], [0, 0]]
    torch = pytest.importorskip("torch")
    rows, counts = unique(torch.tensor([[1, 2], [1, 2], [0, 0]]), return_counts=True)
    assert isinstance(rows, torch.Tensor)
    assert counts.dtype == torch.int64
    assert torch.equal(rows, torch.tensor([[1, 2], [0, 0]]))
    assert counts.tolist() == [2, 1]


def test_results_are_the_callers_own():
    array = np.array([5, 5, 6])
    rows = unique(array)
    rows[:] = 0
    assert array.tolist() == [5, 5, 6]


@pytest.mark.parametrize("bad", [5, "abc", None, np.array(5), np.zeros(3, np.complex64), object()])
def test_arrays_without_rows_of_numbers_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="array"):
        unique(bad)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_result_does_not_depend_on_threads(threads):
    array = np.random.default_rng(2).integers(0, 300, (100_000, 2)).astype(np.int32)
    tensorhash.set_num_threads(threads)
    check_unique(array)
