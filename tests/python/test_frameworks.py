"""NumPy, torch, JAX, lists and core tensors: in without loss, out in the caller's framework."""

import numpy as np
import pytest
from oracle import same

import tensorhash
import tensorhash.core as o3c

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

MAKERS = {
    "numpy": (np.int32, np.ndarray),
    "torch": (lambda rows: torch.tensor(rows, dtype=torch.int32), torch.Tensor),
    "jax": (lambda rows: jnp.array(rows, dtype=jnp.int32), jax.Array),
    "core": (lambda rows: o3c.Tensor(rows, dtype=o3c.int32), o3c.Tensor),
}
TABLES = {
    "numpy": ("int32", np.ndarray),
    "numpy dtype": (np.dtype("int32"), np.ndarray),
    "torch": (torch.int32, torch.Tensor),
    "core": (o3c.int32, o3c.Tensor),
}


@pytest.mark.parametrize("home", TABLES)
@pytest.mark.parametrize("source", MAKERS)
def test_results_use_the_framework_of_the_keys_and_views_that_of_the_table(source, home):
    make, source_type = MAKERS[source]
    dtype, home_type = TABLES[home]
    table = tensorhash.HashMap(4, dtype, (2,), dtype, ())
    keys, values = make([[1, 2], [3, 4], [1, 2]]), make([10, 20, 30])
    results = [
        *table.insert(keys, values),
        *table.find(keys),
        *table.insert_or_assign(keys, values),
        *table.accumulate(keys, values),
        *table.activate(keys),
        table.get(keys),
        table.contains(keys),
        table.erase(keys[1:2]),
    ]
    for result in results:
        assert isinstance(result, source_type), type(result)
    same(np.asarray(results[0]), np.int32([0, 1, 0]))
    same(np.asarray(results[1]), np.array([True, True, False]))
    same(np.asarray(results[10]), np.int32([70, 40, 70]))
    views = [table.key_tensor(), table.value_tensor(), *table.value_tensors()]
    listings = [table.keys(), *table.items(), table.active_buf_indices(), table.compact()]
    for array in (*views, *listings, *table):
        assert isinstance(array, home_type), type(array)


@pytest.mark.parametrize("home", TABLES)
def test_results_for_lists_use_the_framework_of_the_table(home):
    dtype, home_type = TABLES[home]
    table = tensorhash.HashMap(4, dtype, (), dtype, ())
    for result in (
        *table.insert([1, 2], (3, 4)),
        *table.find((2, 9)),
        table.get([1]),
        table.erase([1]),
    ):
        assert isinstance(result, home_type)
    assert [2][0] in table


def test_keys_and_values_may_come_from_different_frameworks():
    table = tensorhash.HashMap(4, "int32", (), "int32", ())
    for number, (key_make, _) in enumerate(MAKERS.values()):
        for other, (value_make, _) in enumerate(MAKERS.values()):
            table.insert_or_assign(key_make([number]), value_make([10 * number + other]))
            assert int(np.asarray(table.get([number]))[0]) == 10 * number + other


@pytest.mark.parametrize("dtype", ["int64", torch.int64, o3c.int64])
def test_views_are_zero_copy_and_aligned_to_64_bytes(dtype):
    table = tensorhash.HashMap(
        7, dtype, (3,), value_dtypes=("uint8", "float64"), value_element_shapes=((3,), ())
    )
    views = [table.key_tensor(), *table.value_tensors()]
    addresses = [np.asarray(view).ctypes.data for view in views]
    assert all(address % 64 == 0 for address in addresses)
    again = [table.key_tensor(), *table.value_tensors()]
    assert [np.asarray(view).ctypes.data for view in again] == addresses
    table.value_tensor(1)[2] = 5.0
    assert float(np.asarray(table.value_tensor(1))[2]) == 5.0


@pytest.mark.parametrize("rows", [1, 3, 100, 5000])
def test_results_are_aligned_to_64_bytes(rows):
    table = tensorhash.HashMap(0, "int64", (), "float32", (3,))
    keys = np.arange(rows)
    results = [*table.insert(keys, np.zeros((rows, 3), np.float32)), *table.find(keys)]
    results += [table.get(keys), table.erase(keys), table.keys(), *tensorhash.unique(keys, True)]
    for array in results:
        assert array.size == 0 or array.ctypes.data % 64 == 0


def test_a_torch_view_and_the_table_share_memory():
    table = tensorhash.HashMap(4, torch.int64, (), torch.float32, (2,))
    table.insert(torch.tensor([5, 6]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    view = table.value_tensor()
    view[1] += 10
    assert table.get(torch.tensor([6])).tolist() == [[13, 14]]
    table.insert_or_assign(torch.tensor([5]), torch.tensor([[7.0, 8.0]]))
    assert view[0].tolist() == [7, 8]


@pytest.mark.parametrize(
    "view",
    [
        lambda grid: grid[:, 1:2],
        lambda grid: grid[::2, 0:1],
        lambda grid: grid.T[0:6, 0:1],
        lambda grid: grid[0:1].expand(5, 6)[:, 0:1],
        lambda grid: grid.flip(0)[:, 3:4],
        lambda grid: grid.reshape(-1)[3:21].unsqueeze(1),
    ],
)
def test_strided_torch_tensors_are_read_by_their_strides(view):
    grid = torch.arange(36).reshape(6, 6)
    keys = view(grid)
    table = tensorhash.HashMap(0, torch.int64, (1,), torch.int64, (1,))
    table.insert(keys, keys)
    expected = list(dict.fromkeys(keys.flatten().tolist()))
    assert table.keys().flatten().tolist() == expected
    assert table.items()[1].flatten().tolist() == expected


def test_torch_tensors_that_need_grad_are_refused_with_the_way_out():
    table = tensorhash.HashMap(4, "int64", (), "float32", ())
    values = torch.ones(2, requires_grad=True)
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r"values.*detach\(\)"):
        table.insert(torch.tensor([1, 2]), values)
    assert table.size() == 0
    table.insert(torch.tensor([1, 2]), values.detach())
    assert table.size() == 2
    keys = torch.ones(2, requires_grad=True)
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r"keys.*detach\(\)"):
        tensorhash.HashSet(4, "float32", ()).insert(keys)


def test_torch_tensors_that_are_sparse_meta_or_conjugate_are_refused_or_resolved():
    table = tensorhash.HashSet(4, "int64", (3,))
    with pytest.raises((TypeError, RuntimeError), match="keys"):
        table.insert(torch.eye(3, dtype=torch.int64).to_sparse())
    with pytest.raises((TypeError, RuntimeError), match="keys"):
        table.insert(torch.empty((2, 3), dtype=torch.int64, device="meta"))
    assert table.size() == 0
    negative = torch.tensor([1 + 2j, 3 + 4j]).conj().imag  # carries a lazy minus sign
    floats = tensorhash.HashSet(4, "float32", ())
    floats.insert(negative)
    assert floats.keys().tolist() == [-2, -4]


def test_torch_casts_are_suggested_in_torchs_words():
    table = tensorhash.HashSet(4, torch.int64, ())
    with pytest.raises(TypeError, match=r"keys: expected int64, got int32.*to\(torch\.int64\)"):
        table.insert(torch.zeros(3, dtype=torch.int32))


def test_bool_and_unsigned_tensors_of_torch():
    for dtype in (torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        keys = torch.tensor([0, 1, 0]).to(dtype)
        table = tensorhash.HashSet(4, dtype, ())
        assert table.insert(keys)[0].tolist() == [0, 1, 0]
        assert table.keys().dtype == dtype


def test_both_kinds_of_dlpack_capsule_are_accepted():
    tensor = torch.arange(4)
    table = tensorhash.HashSet(4, "int64", ())
    for capsule in (tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0))):
        indices, _ = table.insert(capsule)
        same(indices, np.arange(4, dtype=np.int32))


class OnlyDlpack:
    """An array of an unknown framework."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldDlpack(OnlyDlpack):
    """An array from before DLPack had versions."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class OnlyArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype=dtype)


@pytest.mark.parametrize("wrap", [OnlyDlpack, OldDlpack, OnlyArray, memoryview])
def test_objects_of_unknown_frameworks_go_in(wrap):
    table = tensorhash.HashMap(4, "int64", (), "int64", ())
    keys = np.array([5, 6, 5])
    same(np.asarray(table.insert(wrap(keys), wrap(keys * 2))[0]), np.int32([0, 1, 0]))
    same(np.asarray(table.get(wrap(keys))), keys * 2)
    assert tensorhash.unique(wrap(keys)).tolist() == [5, 6]


def test_arrays_of_pythons_array_module_go_in():
    import array

    table = tensorhash.HashSet(4, "int64", ())
    same(np.asarray(table.insert(array.array("q", [5, 6, 5]))[0]), np.int32([0, 1, 0]))


def test_jax_tracers_are_refused_with_a_message():
    table = tensorhash.HashSet(4, "int32", ())
    with pytest.raises(TypeError, match="keys.*jit"):
        jax.jit(lambda keys: table.insert(keys)[0])(jnp.array([1, 2], dtype=jnp.int32))
    assert table.size() == 0


def test_jax_without_64_bits_gets_advice_on_a_cast_that_works():
    assert not jax.config.jax_enable_x64
    keys = jnp.array([5, 6, 5], dtype=jnp.int32)
    table = tensorhash.HashSet(4, "int64", ())
    with pytest.raises(
        TypeError, match="keys: expected int64, got int32; cast with (.*), or set"
    ) as e:
        table.insert(keys)
    cast = (
        e.match("cast with (.*), or set") and str(e.value).split("cast with ")[1].split(", or")[0]
    )
    assert table.insert(eval(cast, {"np": np, "keys": keys}))[0].tolist() == [0, 1, 0]
    narrow = tensorhash.HashSet(4, "int16", ())
    with pytest.raises(TypeError, match=r'cast with keys\.astype\("int16"\)$'):
        narrow.insert(keys)


def test_jax_arrays_of_bfloat16_and_zero_rows():
    table = tensorhash.HashMap(4, "int32", (), "bfloat16", ())
    table.insert(jnp.array([1, 2], dtype=jnp.int32), jnp.array([1.5, 2.5], dtype=jnp.bfloat16))
    values = table.get(jnp.array([2, 1], dtype=jnp.int32))
    assert values.dtype == jnp.bfloat16
    assert values.tolist() == [2.5, 1.5]
    indices, found = table.find(jnp.zeros((0,), dtype=jnp.int32))
    assert (indices.shape, found.shape) == ((0,), (0,))


def test_subclasses_of_numpy_arrays_go_in():
    class Mine(np.ndarray):
        pass

    table = tensorhash.HashSet(4, "int64", ())
    same(np.asarray(table.insert(np.arange(3).view(Mine))[0]), np.int32([0, 1, 2]))
    assert (table.insert(np.ma.masked_array(np.arange(3)))[0] == [0, 1, 2]).all()


def test_inputs_are_never_changed_and_never_kept():
    keys, values = np.arange(100), np.arange(100.0)
    table = tensorhash.HashMap(0, "int64", (), "float64", ())
    table.insert(keys, values)
    keys[:] = -1
    values[:] = -1
    same(table.keys(), np.arange(100))
    same(table.items()[1], np.arange(100.0))
