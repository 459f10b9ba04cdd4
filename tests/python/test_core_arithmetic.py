"""Arithmetic of tensorhash.core.Tensor gives what Open3D 0.20 gives for the same code."""

import operator

import numpy as np
import pytest
from oracle import refused, same

import tensorhash.core as o3c

Tensor = o3c.Tensor
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*INTEGERS, "float32", "float64")


def tensor(values, dtype):
    return Tensor(values, getattr(o3c, dtype))


def test_the_lines_of_the_porting_guide():
    same(tensor([7], "int32") / 2, np.int32([3]))
    same(tensor([1], "int32") * 1.5, np.int32([1]))
    same(tensor([-7], "int32") // 2, np.int32([-3]))
    same(tensor([5.0], "float32") // 2, np.float32([2.5]))
    same(tensor([6, 0], "int64") & tensor([3, 3], "int64"), np.array([True, False]))
    assert tensor([100, 100], "uint8").sum().dtype == o3c.uint8
    assert Tensor.eye(2).dtype == o3c.float32
    assert Tensor([1, 2])[None].shape == (2,)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_arithmetic_keeps_the_dtype(dtype):
    left, right = tensor([9, 4, 6], dtype), tensor([2, 4, 5], dtype)
    whole = dtype in INTEGERS
    for name, expected in (
        ("add", [11, 8, 11]),
        ("sub", [7, 0, 1]),
        ("mul", [18, 16, 30]),
        ("truediv", [4, 1, 1] if whole else [4.5, 1, 1.2]),
        ("floordiv", [4, 1, 1] if whole else [4.5, 1, 1.2]),
    ):
        wanted = np.array(expected).astype(dtype)
        same(getattr(operator, name)(left, right), wanted)
        target = left.clone()
        address = target.numpy().ctypes.data
        result = getattr(operator, f"i{name}")(target, right)
        assert result is target
        assert target.numpy().ctypes.data == address
        same(target, wanted)
        method = {"truediv": "div", "floordiv": "div"}.get(name, name)
        same(getattr(left, method)(right), wanted)
        target = left.clone()
        assert getattr(target, f"{method}_")(right) is target
        same(target, wanted)
    same(left, np.array([9, 4, 6]).astype(dtype))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_number_takes_the_dtype_of_the_tensor_on_either_side(dtype):
    left = tensor([8, 3], dtype)
    whole = dtype in INTEGERS
    same(left + 1, np.array([9, 4]).astype(dtype))
    same(10 - left, np.array([2, 7]).astype(dtype))
    same(left * 2.5, np.array([16, 6] if whole else [20, 7.5]).astype(dtype))
    same(12 / left, np.array([1, 4] if whole else [1.5, 4]).astype(dtype))
    same(13 // left, np.array([1, 4] if whole else [1.625, np.divide(13, 3, dtype=dtype)], dtype))
    same(left > 3.9, np.array([True, not whole and False]))
    same(left == np.float64(8), np.array([True, False]))
    same(left + np.int8(1), np.array([9, 4]).astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_divide_towards_zero_and_wrap(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    left = tensor([-7, 7, -7, 7, -6, low, high, low], dtype)
    right = tensor([2, 2, -2, -2, 3, 2, -2, 1], dtype)
    expected = [-3, 3, 3, -3, -2]
    expected += [-((high + 1) // 2), -(high // 2), low]
    same(left / right, np.array(expected, dtype=dtype))
    same(tensor([high], dtype) + 1, np.array([low], dtype=dtype))
    same(tensor([low], dtype) - 1, np.array([high], dtype=dtype))
    same(tensor([low], dtype).neg(), np.array([low], dtype=dtype))


def test_integers_are_not_divided_by_zero():
    left = tensor([1, 2], "int32")
    for divide in (lambda: left / 0, lambda: left / tensor([1, 0], "int32"), lambda: left / 0.5):
        with pytest.raises(ZeroDivisionError, match="other: expected integers other than 0"):
            divide()
    with pytest.raises(ZeroDivisionError):
        left /= 0
    same(left, np.int32([1, 2]))


@pytest.mark.filterwarnings("error")
def test_floats_give_infinity_and_nan_without_a_warning():
    left = tensor([1, 0, -1], "float32")
    same((left / 0).isinf(), np.array([True, False, True]))
    same((left / 0).isnan(), np.array([False, True, False]))
    same((tensor([3e38], "float32") * 10).isinf(), np.array([True]))
    same(tensor([np.nan, 2.0], "float64").to(o3c.int32)[1:], np.int32([2]))
    same((tensor([1.0], "float32") * 1e300).isinf(), np.array([True]))
    same(tensor([-1.0], "float64").sqrt().isnan(), np.array([True]))
    same(tensor([1000.0], "float32").exp().isinf(), np.array([True]))


def test_other_dtypes_are_refused_and_the_message_says_how_to_proceed():
    left, right = tensor([1], "int32"), tensor([1], "int64")
    for call in (
        lambda: left + right,
        lambda: left.add_(right),
        lambda: left == right,
        lambda: left & right,
        lambda: o3c.maximum(left, right),
        lambda: left + np.array([1]),
        lambda: left.add([1]),
    ):
        error = refused(call, "expected Int32", "got Int64", ".to(o3c.int32)")
        assert isinstance(error, TypeError)
    same(left + np.int32([4]), np.int32([5]))
    same(np.int32([4]) - left, np.int32([3]))
    assert isinstance(np.int32([4]) - left, Tensor)


@pytest.mark.parametrize("number", [256, -1, 1e3, float("nan"), float("inf"), 2**70])
def test_a_number_that_an_integer_dtype_cannot_hold_is_refused(number):
    left = tensor([1, 2], "uint8")
    for call in (lambda: left + number, lambda: left > number, lambda: left.clip(0, number)):
        error = refused(call, "a number that UInt8 holds, 0 to 255")
        assert isinstance(error, ValueError)
    same(left, np.uint8([1, 2]))


def test_operators_read_a_float_as_float32_as_in_open3d():
    tenth = float(np.float32(0.1))
    left = tensor([1.0], "float64")
    for result in (left * 0.1, 0.1 * left, left.mul(np.float64(0.1)), left.clip(0, 0.1)):
        same(result, np.array([tenth]))
    same(Tensor.full((1,), 0.1, o3c.float64), np.array([tenth]))
    # Tensors and assignments keep all digits.
    same(left * Tensor(0.1), np.array([0.1]))
    left[0] = 0.1
    same(left, np.array([0.1]))
    same(Tensor(0.1), np.array(0.1))


@pytest.mark.parametrize("dtype,number", [("float64", 1e300), ("float64", 1e-60), ("int64", 1e18)])
def test_numbers_that_float32_would_lose_entirely_are_refused(dtype, number):
    left = tensor([1], dtype)
    error = refused(lambda: left + number, "Float32", f"pass o3c.Tensor({number!r})")
    assert isinstance(error, ValueError)
    same(left * Tensor(number).to(left.dtype), np.array([number]).astype(dtype))
    same(tensor([1], "int64") + 2.0**40, np.array([2**40 + 1]))


def test_booleans_have_logic_and_no_arithmetic():
    left, right = Tensor([True, True, False]), Tensor([True, False, False])
    same(left & right, np.array([True, False, False]))
    same(left | right, np.array([True, True, False]))
    same(left ^ right, np.array([False, True, False]))
    same(~left, np.array([False, False, True]))
    same(left.logical_not(), np.array([False, False, True]))
    same(True & left, left.numpy())
    for call in (lambda: left + right, lambda: left * 2, lambda: left.neg(), lambda: left.sum()):
        assert isinstance(refused(call, "Bool"), TypeError)
    with pytest.raises(TypeError, match="expected a Bool tensor, got Int64"):
        ~Tensor([1])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_logic_and_comparisons_give_bool_and_their_in_place_forms_keep_the_dtype(dtype):
    left, right = tensor([0, 2, 5], dtype), tensor([0, 0, 5], dtype)
    for name, expected in (
        ("logical_and", [False, False, True]),
        ("logical_or", [False, True, True]),
        ("logical_xor", [False, True, False]),
        ("gt", [False, True, False]),
        ("lt", [False, False, False]),
        ("ge", [True, True, True]),
        ("le", [True, False, True]),
        ("eq", [True, False, True]),
        ("ne", [False, True, False]),
    ):
        same(getattr(left, name)(right), np.array(expected))
        target = left.clone()
        getattr(target, f"{name}_")(right)
        same(target, np.array(expected).astype(dtype))
    target = left.clone()
    target &= right
    same(target, np.array([0, 0, 1]).astype(dtype))
    same(left.logical_not(), np.array([True, False, False]))


def test_in_place_operators_need_the_shape_and_write_through_views():
    grid = tensor([[1, 2], [3, 4]], "float32")
    grid[0] += 10
    row = grid[1]
    row *= tensor([2, 3], "float32")
    same(grid, np.float32([[11, 12], [6, 12]]))
    grid += tensor([[1], [2]], "float32")
    same(grid, np.float32([[12, 13], [8, 14]]))
    with pytest.raises(ValueError, match=r"other: expected a shape that broadcasts to \(2,\)"):
        row += grid
    grid -= grid.T()
    same(grid, np.float32([[0, 5], [-5, 0]]))


def test_unknown_operands_are_left_to_python():
    left = Tensor([1, 2])
    assert (left == None) is False  # noqa: E711
    assert (left != "a") is True
    for call in (lambda: left + None, lambda: left < "a", lambda: left.add(None), lambda: left % 2):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_half_floats_that_open3d_lacks_follow_the_same_rules(dtype):
    pytest.importorskip("ml_dtypes")
    left = Tensor([1.5, -2.0]).to(getattr(o3c, dtype))
    assert (left * 2).dtype == left.dtype
    assert (left * 2).numpy().tolist() == [3, -4]
    assert (left / left).sum().dtype == left.dtype
    assert left.round().numpy().tolist() == [2, -2]
