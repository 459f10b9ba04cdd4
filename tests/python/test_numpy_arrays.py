"""NumPy arrays of every layout, in and out: the fast path for plain arrays gives equal results."""

import gc

import numpy as np
import pytest
from oracle import KEY_DTYPES, Oracle, same

import tensorhash
from tensorhash import _core

GRID = np.random.default_rng(0).integers(0, 5, (40, 6))


class Subclass(np.ndarray):
    """An array of a user's class."""


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "plain": lambda: GRID[:, :3].copy(),
    "every other column": lambda: GRID[:, ::2],
    "backwards": lambda: GRID[::-1, :3],
    "columns first": lambda: np.asfortranarray(GRID[:, :3]),
    "turned": lambda: GRID[:3].T,
    "one row many times": lambda: np.broadcast_to(GRID[0, :3], (20, 3)),
    "read-only": lambda: read_only(GRID[:, :3]),
    "not aligned": lambda: unaligned(GRID[:, :3]),
    "big-endian": lambda: GRID[:, :3].astype(">i8"),
    "little-endian": lambda: GRID[:, :3].astype("<i8"),
    "of long long": lambda: GRID[:, :3].astype(np.longlong),
    "a subclass": lambda: GRID[:, :3].copy().view(Subclass),
    "a matrix": lambda: np.matrix(GRID[:, :3]),
    "unmasked": lambda: np.ma.MaskedArray(GRID[:, :3].copy()),
    "one row": lambda: GRID[:1, :3].copy(),
    "no rows": lambda: GRID[:0, :3],
    "no rows, one axis": lambda: np.zeros(0, dtype=np.int64),
    "rows of three axes": lambda: GRID[:, :3].reshape(40, 1, 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_row_by_row(layout):
    keys = LAYOUTS[layout]()
    rows = np.ascontiguousarray(keys, dtype=np.int64).reshape(-1, 3)
    table, oracle = tensorhash.HashMap(0, "int64", (3,), "int64", ()), Oracle()
    values = np.arange(len(keys))
    for got, expected in (
        (table.insert(keys, values), oracle.insert(rows, values)),
        (table.find(keys), oracle.find(rows)),
        (table.activate(keys), oracle.activate(rows)),
    ):
        for array, wanted in zip(got, expected, strict=True):
            assert type(array) is np.ndarray
            same(array, wanted)
    same(table.contains(keys), np.ones(len(keys), dtype=bool))
    same(table.get(keys), values[[int(np.argmax((rows == row).all(1))) for row in rows]])
    same(table.erase(keys), oracle.erase(rows))
    table.validate()


@pytest.mark.parametrize("threshold", [1, 5000])
def test_one_row_and_many_rows_give_the_same(threshold):
    keys = np.random.default_rng(1).integers(0, 1000, threshold)
    table, oracle = tensorhash.HashSet(0, "int64", ()), Oracle()
    for array, wanted in zip(
        table.insert(keys), oracle.insert(keys, np.zeros(threshold)), strict=True
    ):
        same(array, wanted)


@pytest.mark.parametrize("dtype", ["int32", "float64", "uint64", ">f4", "bool", "float16"])
def test_another_dtype_is_refused_by_name(dtype):
    table = tensorhash.HashSet(4, "int64", ())
    with pytest.raises(TypeError, match="^keys: expected int64, got"):
        table.find(np.zeros(3, dtype=dtype))


@pytest.mark.parametrize("bad", [np.array(5), np.zeros((2, 2), np.int64)])
def test_another_shape_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="^keys: expected shape"):
        tensorhash.HashSet(4, "int64", ()).find(bad)


@pytest.mark.parametrize("dtype", ["complex64", "U3", "O", "M8[s]", "i4,i4", "longdouble"])
def test_arrays_without_numbers_are_refused_by_name(dtype):
    with pytest.raises(TypeError, match="^keys: expected an array of int64"):
        tensorhash.HashSet(4, "int64", ()).find(np.zeros(3, dtype=dtype))


@pytest.mark.parametrize("dtype", [*KEY_DTYPES, "float16"])
def test_every_dtype_comes_back_as_it_went_in(dtype):
    values = np.arange(6).reshape(3, 2).astype(dtype)
    table = tensorhash.HashMap.from_items(np.arange(3), values)
    got = table.get(np.array([2, 0]))
    assert got.dtype == np.dtype(dtype)
    assert got.dtype.char == np.dtype(dtype).char
    same(got, values[[2, 0]])


def test_results_are_writable_aligned_and_outlive_the_table():
    table = tensorhash.HashMap.from_items(np.arange(5), np.arange(5) * 10)
    results = [*table.find(np.array([3, 9])), table.get(np.array([3, 9]))]
    for array in results:
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert array.ctypes.data % 64 == 0
    view = table.value_tensor()
    table.clear()
    del table
    gc.collect()
    assert [array.tolist() for array in results] == [[3, -1], [True, False], [30, 0]]
    assert view.tolist() == [0, 10, 20, 30, 40]
    results[0][0] = 7


def test_an_array_is_kept_alive_while_the_core_uses_its_memory():
    array = np.arange(10)
    tensor = _core.Tensor.wrap(array)
    before = array.copy()
    with pytest.raises(ValueError, match="resize"):
        array.resize(20_000)
    del array
    gc.collect()
    same(_core.to_numpy(tensor), before)


def test_read_only_arrays_stay_read_only():
    fixed = read_only(np.arange(3))
    array = _core.to_numpy(_core.Tensor.wrap(fixed))
    assert not array.flags.writeable
    with pytest.raises(ValueError):
        array.flags.writeable = True
    assert _core.to_numpy(_core.Tensor.wrap(np.arange(3))).flags.writeable


def test_strides_survive_import_and_export():
    for array in (GRID[::-2, 1::3], GRID.T, np.broadcast_to(np.arange(3), (4, 3)), GRID[:0]):
        out = _core.to_numpy(_core.Tensor.wrap(array))
        assert out.strides == array.strides
        same(out, array)


def test_only_tensors_are_made_numpy_arrays():
    for bad in (5, None, "text", np.arange(3)):
        with pytest.raises(TypeError):
            _core.to_numpy(bad)
