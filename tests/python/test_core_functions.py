"""Functions of tensorhash.core beyond operators give what Open3D 0.20 gives for the same code."""

import numpy as np
import pytest
from oracle import refused, same

import tensorhash.core as o3c

Tensor = o3c.Tensor


def tensor(values, dtype):
    return Tensor(values, getattr(o3c, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_goes_to_even_and_floor_ceil_trunc_as_named(dtype):
    values = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.2, 7.0, np.inf, -np.inf]
    t = tensor(values, dtype)
    same(t.round(), np.array([0, -0.0, 2, 2, -2, 0, -0.0, 7, np.inf, -np.inf]).astype(dtype))
    same(t.floor(), np.floor(t.numpy()))
    same(t.ceil(), np.ceil(t.numpy()))
    same(t.trunc(), np.trunc(t.numpy()))
    assert tensor([np.nan], dtype).round().isnan().all()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_whole_numbers_stay_as_they_are_even_beyond_2_to_53(dtype):
    t = Tensor(np.array([0, 5, np.iinfo(dtype).max], dtype))
    for name in ("round", "floor", "ceil", "trunc", "abs"):
        result = getattr(t, name)()
        same(result, t.numpy())
        assert not np.shares_memory(result.numpy(), t.numpy())
    for name in ("sqrt", "exp", "sin", "cos"):
        assert isinstance(refused(getattr(t, name), name, "Float32 or Float64"), TypeError)
    same(t.isnan() | t.isinf(), np.array([False] * 3))
    same(t.isfinite(), np.array([True] * 3))


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "cos", "abs", "neg", "logical_not"])
def test_functions_and_their_in_place_forms(name):
    t = tensor([0.25, 1.0, 4.0], "float32")
    function = {"abs": np.abs, "neg": np.negative}.get(name) or getattr(np, name)
    expected = function(t.numpy())
    same(getattr(t, name)(), expected)
    target = t.clone()
    assert getattr(target, f"{name}_")() is target
    same(target, expected.astype(np.float32))


def test_clip_keeps_nan_and_casts_its_bounds():
    same(tensor([-5, 0, 9], "int32").clip(-1.9, 3.9), np.int32([-1, 0, 3]))
    clipped = tensor([np.nan, 2, -2], "float64").clip(-1, 1)
    same(clipped[1:], np.array([1.0, -1.0]))
    assert clipped[0].isnan()
    t = tensor([5, 6], "uint8")
    assert t.clip_(0, 5) is t
    same(t, np.uint8([5, 5]))


def test_nonzero_gives_a_list_or_one_tensor():
    t = Tensor([[0, 3], [4, 0], [0, 5]])
    rows, columns = t.nonzero()
    same(rows, np.array([0, 1, 2]))
    same(columns, np.array([1, 0, 1]))
    same(t.nonzero(as_tuple=True), np.array([[0, 1, 2], [1, 0, 1]]))


def test_isclose_allclose_and_issame():
    t = tensor([1.0, 2.0], "float64")
    same(t.isclose(tensor([1.0 + 1e-9, 2.1], "float64")), np.array([True, False]))
    assert t.allclose(t.clone()) is True
    assert t.allclose(tensor([1.0, 3.0], "float64")) is False
    assert t.allclose(tensor([1.0, 3.0], "float64"), rtol=0.0, atol=1.0) is True
    assert isinstance(refused(lambda: t.isclose(tensor([1, 2], "float32")), "Float64"), TypeError)
    assert isinstance(refused(lambda: t.isclose(tensor([1], "float64")), "shape"), ValueError)
    assert t.issame(t) is True
    assert t.issame(t[:]) is True
    assert t.issame(t.clone()) is False
    assert t.issame(t[::2]) is False


def test_casts_from_floats_do_not_depend_on_the_layout():
    values = np.array([np.nan, -1.0, 3e9, 5e9, 1e20, -np.inf, 2.9] * 5)
    for name in ("int8", "int32", "int64", "uint8", "uint32", "uint64"):
        whole = Tensor(values).to(getattr(o3c, name)).numpy()
        strided = Tensor(np.stack([values, values], 1))[:, 0].to(getattr(o3c, name))
        same(strided, whole)
        assert whole[6] == 2


def test_maximum_and_minimum():
    left, right = tensor([[1, 5]], "int32"), tensor([[3], [2]], "int32")
    same(o3c.maximum(left, right), np.int32([[3, 5], [2, 5]]))
    same(o3c.minimum(left, right), np.int32([[1, 3], [1, 2]]))
    same(o3c.maximum(Tensor([1, 5]), 3), np.array([3, 5]))
    beside = o3c.maximum(tensor([np.nan, 5.0], "float64"), tensor([3.0, np.nan], "float64"))
    same(beside.isnan(), np.array([True, False]))
    assert isinstance(refused(lambda: o3c.maximum(left, 0.5), "expected Int32"), TypeError)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "float64"])
def test_reductions_keep_the_dtype(dtype):
    t = tensor([[1, 2, 3], [4, 5, 6]], dtype)
    same(t.sum(), np.array(21).astype(dtype))
    same(t.sum(0), np.array([5, 7, 9]).astype(dtype))
    same(t.sum((0, 1), True), np.array([[21]]).astype(dtype))
    same(t.sum(dim=1, keepdim=True), np.array([[6], [15]]).astype(dtype))
    same(t.prod(1), np.array([6, 120]).astype(dtype))
    same(t.min(0), np.array([1, 2, 3]).astype(dtype))
    same(t.max(), np.array(6).astype(dtype))
    same(t.argmax(), np.array(5))
    same(t.argmin(1), np.array([0, 0]))
    same(tensor([200, 100], "uint8").sum(), np.array(44, np.uint8))
    if "float" in dtype:
        same(t.mean(), np.array(3.5).astype(dtype))
    else:
        assert isinstance(refused(t.mean, "mean", "Float32 or Float64"), TypeError)


def test_flatten_joins_the_dimensions_from_start_to_end():
    t = Tensor(np.arange(24).reshape(2, 3, 4))
    assert t.flatten().shape == (24,)
    assert t.flatten(1).shape == (2, 12)
    assert t.flatten(0, 1).shape == (6, 4)
    assert t.flatten(-2, -1).shape == (2, 12)
    assert t.flatten(1, 1).shape == (2, 3, 4)
    assert Tensor(3).flatten().shape == (1,)
    assert np.shares_memory(t.flatten().numpy(), t.numpy())
    for bad in ((2, 1), (0, 3), (-4, 0)):
        assert isinstance(refused(lambda bad=bad: t.flatten(*bad), "start_dim"), ValueError)


def test_concatenate_and_append():
    a, b = Tensor([[0, 1], [2, 3]]), Tensor([[4, 5]])
    same(o3c.concatenate((a, b)), np.array([[0, 1], [2, 3], [4, 5]]))
    same(o3c.concatenate([a, a], 1), np.array([[0, 1, 0, 1], [2, 3, 2, 3]]))
    same(o3c.append(a, b, 0), np.array([[0, 1], [2, 3], [4, 5]]))
    same(o3c.append(a, b), np.arange(6))
    same(o3c.concatenate((a, b), None), np.array([[0, 1], [2, 3], [4, 5]]))
    same(o3c.concatenate([a]), np.arange(4))
    same(a.append(b, axis=0), np.array([[0, 1], [2, 3], [4, 5]]))
    for call in (lambda: o3c.concatenate((a, b.to(o3c.int32))), lambda: a.append(b.to(o3c.int8))):
        assert isinstance(refused(call, "expected Int64"), TypeError)
    assert isinstance(refused(lambda: o3c.concatenate(()), "tensors"), ValueError)


def test_creation_is_float32_unless_a_dtype_is_given():
    for made in (
        Tensor.zeros((2,)),
        Tensor.ones((2,)),
        Tensor.empty((2,), None, None),
        Tensor.full((2,), 3),
        Tensor.eye(2),
    ):
        assert made.dtype == o3c.float32
    assert Tensor.arange(3).dtype == o3c.int64
    assert Tensor.arange(0.5, 3).dtype == o3c.float64
    same(Tensor.arange(stop=3), np.arange(3))
    same(Tensor.arange(5, 0, -2), np.array([5, 3, 1]))
    same(Tensor.arange(3, dtype=o3c.float32), np.float32([0, 1, 2]))
    same(Tensor.diag(Tensor([1, 2])), np.array([[1, 0], [0, 2]]))
    same(Tensor.full((2,), 2.7, o3c.int32), np.int32([2, 2]))
    same(Tensor.arange(0, 1, 0.1), np.arange(10) * 0.1)
    same(Tensor.arange(0.5, 3, dtype=o3c.int32), np.int32([0, 1, 2]))
    assert isinstance(refused(lambda: Tensor.full((2,), 300, o3c.uint8), "fill_value"), ValueError)
    assert isinstance(refused(lambda: Tensor.arange(0, 5, 0), "step"), ValueError)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
def test_npy_files_restore_a_tensor_and_are_numpys(tmp_path, dtype):
    path = tmp_path / "tensor.npy"
    for array in (np.arange(6).reshape(2, 3), np.array(1), np.zeros((0, 3)), np.ones((3, 4)).T):
        t = Tensor(array.astype(dtype))
        t.save(str(path))
        same(Tensor.load(path), t.numpy())
        same(np.load(path), t.numpy())
        assert Tensor.load(path).is_contiguous()
    assert [entry.name for entry in tmp_path.iterdir()] == ["tensor.npy"]


def test_invalid_npy_files_are_refused_before_memory_is_allocated(tmp_path):
    path = tmp_path / "bad.npy"
    np.save(path, np.arange(10))
    whole = path.read_bytes()
    huge = whole.replace(b"(10,)", b"(%d,)" % 2**48)
    objects = whole.replace(b"<i8", b"|O8")
    for data in (whole[:-1], whole[:20], b"", b"PK", huge, objects):
        path.write_bytes(data)
        assert isinstance(refused(lambda: Tensor.load(path), "bad.npy"), ValueError)
    with pytest.raises(FileNotFoundError):
        Tensor.load(tmp_path / "none.npy")
    with pytest.raises(ValueError, match="expected a file"):
        Tensor.load(tmp_path)


def test_bad_shapes_and_dimensions_are_named():
    t, empty = Tensor(np.arange(6).reshape(2, 3)), Tensor(np.zeros((0, 3)))
    for call, part in (
        (
            lambda: t + Tensor([1, 2]),
            "other: expected a shape that broadcasts with (2, 3), got (2,)",
        ),
        (lambda: o3c.minimum(t, Tensor([1, 2])), "other: expected a shape that broadcasts"),
        (lambda: t.sum(2), "dim: expected dimensions of a 2-D tensor, got 2"),
        (lambda: t.max((0, 0)), "dim: expected each dimension once"),
        (lambda: Tensor(5).sum(0), "dim: expected dimensions of a 0-D tensor"),
        (lambda: t.argmax((0, 2)), "dim: expected dimensions"),
        (lambda: empty.min(), "min: expected elements, got shape (0, 3)"),
        (lambda: empty.argmax(1), "argmax: expected elements"),
        (lambda: o3c.concatenate((t, t[0])), "tensors: expected shapes that join"),
        (lambda: t.append(t[:, :2], 0), "values: expected a shape that can be appended"),
    ):
        assert isinstance(refused(call, part), ValueError)
    same(empty.sum(0), np.zeros(3))
    assert empty.mean().isnan()
