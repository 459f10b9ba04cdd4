"""Every key dtype in every shape, every value dtype, under every name of a dtype."""

import numpy as np
import pytest
from oracle import KEY_DTYPES, Oracle, check, same, same_pair

import tensorhash
import tensorhash.core as o3c

VALUE_DTYPES = (*KEY_DTYPES, "float16", "bfloat16")
SHAPES = [(), (1,), (2,), (3,), (5,), (8,), (2, 3), (1, 4, 1), (16,), (33,)]


def numpy_dtype(name):
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_keys_of_every_dtype_and_shape(dtype, shape):
    rng = np.random.default_rng(0)
    high = 2 if dtype == "bool" else 5
    keys = rng.integers(0, high, (400, *shape)).astype(dtype)
    if shape:
        keys.reshape(400, -1)[:, 1:] = keys.reshape(400, -1)[:, :1]  # many equal keys
    table = tensorhash.HashMap(0, dtype, shape, "int64", ())
    oracle = Oracle()
    numbers = np.arange(400)
    for _ in range(3):
        same_pair(table.insert(keys, numbers), oracle.insert(keys, numbers))
        same(table.erase(keys[::7]), oracle.erase(keys[::7]))
    same_pair(table.find(keys), oracle.find(keys))
    check(table, oracle)
    assert table.key_tensor().dtype == np.dtype(dtype)
    assert table.key_tensor().shape[1:] == shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_values_of_every_dtype_and_shape(dtype, shape):
    values = np.arange(60 * int(np.prod(shape, dtype=int))).reshape(60, *shape)
    values = (values % 100).astype(numpy_dtype(dtype))
    table = tensorhash.HashMap(0, "int64", (), dtype, shape)
    table.insert(np.arange(60), values)
    assert table.value_tensor().dtype == numpy_dtype(dtype)
    order = np.random.default_rng(0).permutation(60)
    got = table.get(order)
    assert got.dtype == values.dtype
    assert got.tobytes() == values[order].tobytes()
    table.insert_or_assign(order, values)
    assert table.get(order).tobytes() == values.tobytes()


@pytest.mark.parametrize("name", KEY_DTYPES)
def test_dtypes_are_named_by_strings_numpy_and_core(name):
    for dtype in (name, np.dtype(name), np.dtype(name).type, getattr(o3c, name)):
        table = tensorhash.HashMap(1, dtype, (), dtype, ())
        assert np.asarray(table.key_tensor()).dtype == np.dtype(name)
        assert np.asarray(table.value_tensor()).dtype == np.dtype(name)


@pytest.mark.parametrize("dtype, name", [(bool, "bool"), (int, "int64"), (float, "float64")])
def test_pythons_own_types_are_dtypes(dtype, name):
    assert tensorhash.HashSet(1, dtype, ()).key_tensor().dtype == np.dtype(name)


@pytest.mark.parametrize("name", VALUE_DTYPES)
def test_dtypes_of_torch(name):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    table = tensorhash.HashMap(2, torch.int64, (), dtype, (2,))
    assert table.value_tensor().dtype == dtype
    values = torch.tensor([[0, 1], [1, 1]]).to(dtype)
    table.insert(torch.tensor([4, 5]), values)
    assert torch.equal(table.get(torch.tensor([5, 4])), values.flip(0))


def test_bfloat16_comes_through_ml_dtypes_torch_and_lists():
    bfloat16 = numpy_dtype("bfloat16")
    torch = pytest.importorskip("torch")
    for dtype in (bfloat16, bfloat16.type, "bfloat16", o3c.bfloat16):
        table = tensorhash.HashMap(2, "int64", (), dtype, ())
        table.insert(np.array([1]), np.array([1.5], dtype=bfloat16))
        table.insert(torch.tensor([2]), torch.tensor([2.5], dtype=torch.bfloat16))
        table.insert([3], [3.140625])
        assert [float(value) for value in np.asarray(table.get(np.array([1, 2, 3])))] == [
            1.5,
            2.5,
            3.140625,
        ]


def test_lists_round_to_bfloat16_to_nearest_even():
    bfloat16 = numpy_dtype("bfloat16")
    numbers = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    numbers = np.concatenate([numbers, np.float32([1 + 2**-8, 1 + 3 * 2**-8, np.inf, -0.0])])
    table = tensorhash.HashMap(0, "int64", (), "bfloat16", ())
    table.insert(list(range(len(numbers))), numbers.tolist())
    got = table.get(list(range(len(numbers))))
    assert got.tobytes() == numbers.astype(bfloat16).tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_floats_are_not_key_dtypes(dtype):
    with pytest.raises(TypeError, match=f"key_dtype.*{dtype}"):
        tensorhash.HashSet(1, dtype, ())
    with pytest.raises(TypeError, match="array"):
        tensorhash.unique(np.zeros(3, dtype=numpy_dtype(dtype)))


@pytest.mark.parametrize(
    "dtype",
    ["complex64", "int63", "", None, object(), 5, np.complex128, "O", "U5", "datetime64[s]"],
)
def test_an_unknown_dtype_is_a_type_error_that_names_it(dtype):
    with pytest.raises(TypeError, match="key_dtype"):
        tensorhash.HashSet(1, dtype, ())
    with pytest.raises(TypeError, match="value_dtype"):
        tensorhash.HashMap(1, "int64", (), value_dtypes=[dtype], value_element_shapes=[()])


def test_undefined_is_no_dtype():
    with pytest.raises(TypeError, match="key_dtype.*Undefined"):
        o3c.HashSet(1, o3c.undefined, ())


def test_torch_dtypes_that_tables_lack_are_refused():
    torch = pytest.importorskip("torch")
    for dtype in (torch.complex64, torch.float8_e4m3fn):
        with pytest.raises(TypeError, match="key_dtype"):
            tensorhash.HashSet(1, dtype, ())


def test_big_endian_dtypes_make_a_native_table():
    assert tensorhash.HashSet(1, ">i4", ()).key_tensor().dtype == np.dtype("int32")


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_lists_become_the_dtype_of_the_column(dtype):
    table = tensorhash.HashMap(0, "int64", (), dtype, (2,))
    table.insert([1, 2], [[0, 1], [1, 0]])
    assert table.get([2]).dtype == numpy_dtype(dtype)
    assert np.asarray(table.get([2]), dtype=np.float64).tolist() == [[1, 0]]
