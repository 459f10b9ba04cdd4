"""Runs the same code with open3d.core and with tensorhash.core and compares the results."""

import numpy as np
import open3d.core

import tensorhash.core

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)


def plain(result):
    """Converts Tensors to NumPy arrays, also inside tuples and lists."""
    if isinstance(result, (tuple, list)) and not hasattr(result, "num_elements"):
        return [plain(part) for part in result]
    return result.numpy() if hasattr(result, "numpy") else result


def outcome(code, module):
    """The result of the code, or the error that it raises."""
    try:
        return plain(code(module)), None
    except Exception as error:
        return None, error


def equal(got, expected, tolerance):
    """Equal in type, shape and bits, or close where `tolerance` is given; NaN equals NaN."""
    if isinstance(expected, list):
        return len(got) == len(expected) and all(
            equal(a, b, tolerance) for a, b in zip(got, expected, strict=True)
        )
    if not isinstance(expected, np.ndarray):
        return type(got) is type(expected) and (
            got == expected or (tolerance is not None and np.isclose(got, expected, rtol=tolerance))
        )
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    if tolerance is not None and expected.dtype.kind == "f":
        # A sum that cancels is only as exact as its largest term.
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        return np.allclose(got, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    same_bits = got == expected
    if expected.dtype.kind == "f":
        same_bits = (same_bits & (np.signbit(got) == np.signbit(expected))) | (
            np.isnan(got) & np.isnan(expected)
        )
    return bool(np.all(same_bits))


def agree(code, *, tolerance=None, note=""):
    """Fails unless both modules give the same result, or both raise."""
    expected, their_error = outcome(code, open3d.core)
    got, our_error = outcome(code, tensorhash.core)
    if their_error is not None or our_error is not None:
        assert (their_error is None) == (our_error is None), (
            f"{note}: Open3D {their_error or plain(expected)!r}, we {our_error or got!r}"
        )
        return
    assert equal(got, expected, tolerance), (
        f"{note}: Open3D {getattr(expected, 'dtype', '')} {expected!r}, "
        f"we {getattr(got, 'dtype', '')} {got!r}"
    )


def random_array(rng, dtype, shape, *, zeros=True, special=True):
    """Random elements over the whole range of `dtype`, including extremes."""
    return np.asarray(_random_elements(rng, np.dtype(dtype), shape, zeros, special))


def _random_elements(rng, dtype, shape, zeros, special):
    if dtype.kind == "b":
        return rng.integers(0, 2, shape) == 1
    if dtype.kind == "f":
        array = rng.normal(0, 10.0 ** rng.integers(-3, 4), shape).astype(dtype)
        if special:
            odd = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan], dtype)
            where = rng.random(shape) < 0.3
            array = np.where(where, rng.choice(odd, shape), array).astype(dtype)
        return array if zeros else np.where(array == 0, dtype.type(1), array)
    limits = np.iinfo(dtype)
    low, high = (limits.min, limits.max) if special else (max(limits.min, -100), 100)
    array = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    small = rng.integers(max(limits.min, -3), 3, shape, endpoint=True).astype(dtype)
    array = np.where(rng.random(shape) < 0.5, small, array)
    return array if zeros else np.where(array == 0, dtype.type(1), array)
