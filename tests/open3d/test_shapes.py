"""Indices, creation, shapes and linear algebra of Open3D's wheel and ours, side by side."""

import itertools

import numpy as np
import pytest

pytest.importorskip("open3d")

from agreement import DTYPES, agree, random_array

FLOATS = ["float32", "float64"]
INDICES = [
    *(0, -1, 3, slice(None), slice(1, 3), slice(0, None, 2), slice(-2, None), slice(3, 1), None),
    *([0, 2, 2], [-1, 0], [True, False, True, True], np.array([1, 1]), np.array([[0, 1], [2, 3]])),
    *((0, 1), (slice(None), 1), (1, slice(0, 2)), ([0, 1], [1, 2]), ([0, 1], slice(None))),
    *((slice(None), [2, 0]), (slice(1, 3), [0, 2], 1), (1, [0, 2]), ([3, 1], 0), (0, 0, 0)),
    *((slice(None), slice(None), [1, 0]), ([0, 1], slice(None), [1, 0]), (slice(2), 1, slice(1))),
    *((slice(None), None), 9, [9], -9, [-9], (0, 0, 0, 0)),
]


def spelled(o3c, index):
    """Keeps lists; makes arrays Tensors, as scripts do."""
    if isinstance(index, tuple):
        return tuple(spelled(o3c, part) for part in index)
    return o3c.Tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("number", range(len(INDICES)))
@pytest.mark.parametrize("dtype", ["int64", "float32", "bool"])
def test_reading_and_writing_by_index(number, dtype):
    index = INDICES[number]
    rng = np.random.default_rng(number)
    array = random_array(rng, dtype, (4, 3, 2))
    agree(lambda o3c: o3c.Tensor(array)[spelled(o3c, index)], note=f"[{index}]")

    def write(o3c, value):
        tensor = o3c.Tensor(array)
        tensor[spelled(o3c, index)] = value(o3c)
        return tensor

    one = random_array(rng, dtype, ())
    agree(lambda o3c: write(o3c, lambda o3c: o3c.Tensor(one)), note=f"[{index}] = {one}")
    agree(lambda o3c: write(o3c, lambda o3c: 1), note=f"[{index}] = 1")
    agree(lambda o3c: write(o3c, lambda o3c: o3c.Tensor(np.float64(1.0))), note=f"[{index}] = f8")


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_creation(dtype):
    def named(o3c):
        return None if dtype is None else getattr(o3c, dtype)

    for shape in ((), (3,), (2, 0), [2, 3], 4):
        agree(lambda o3c, s=shape: o3c.Tensor.zeros(s, named(o3c)), note=f"zeros({shape})")
        agree(lambda o3c, s=shape: o3c.Tensor.ones(s, dtype=named(o3c)), note=f"ones({shape})")
        agree(lambda o3c, s=shape: o3c.Tensor.full(s, 3, named(o3c)), note=f"full({shape})")
        agree(lambda o3c, s=shape: o3c.Tensor.full(s, 2.5, named(o3c)), note=f"full({shape})")
        agree(
            lambda o3c, s=shape: list(o3c.Tensor.empty(s, named(o3c)).shape), note=f"empty({shape})"
        )
    ranges = [(5,), (1, 6), (1, 9, 3), (2.5,), (0.5, 3), (0, 1, 0.1), (0, 5, 0)]
    # Open3D wraps the length of a descending unsigned range and allocates gigabytes.
    ranges += [] if (dtype or "").startswith("u") else [(9, 1, -2), (5, 1)]
    for arguments in ranges:
        agree(lambda o3c, a=arguments: o3c.Tensor.arange(*a, dtype=named(o3c)), note=f"{arguments}")
    for n in (0, 1, 4):
        agree(lambda o3c, n=n: o3c.Tensor.eye(n, named(o3c)), note=f"eye({n})")
    for values in (3, 2.5, True, [1, 2], (1.5, 2), [[True], [False]], [], [[]]):
        agree(lambda o3c, v=values: o3c.Tensor(v, named(o3c)), note=f"Tensor({values})")


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_joins_and_extremes(dtype):
    rng = np.random.default_rng(2)
    cube, other = (random_array(rng, dtype, (2, 3, 4)) for _ in range(2))
    for start, end in itertools.product(range(-4, 4), repeat=2):
        agree(lambda o3c, s=start, e=end: o3c.Tensor(cube).flatten(s, e), note=f"{start} {end}")
    for shape in ((-1, 1), (24,), (4, 6), (5, 5), (2, -1), (-1, -1)):
        agree(lambda o3c, s=shape: o3c.Tensor(cube).reshape(s), note=f"{shape}")
    agree(lambda o3c: o3c.Tensor(cube[0]).T())
    agree(lambda o3c: o3c.Tensor(cube).T())
    for axis in (0, 1, 2, -1, 3, None):
        agree(
            lambda o3c, a=axis: o3c.concatenate((o3c.Tensor(cube), o3c.Tensor(other)), a),
            note=f"concatenate {axis}",
        )
        agree(
            lambda o3c, a=axis: o3c.append(o3c.Tensor(cube), o3c.Tensor(other), a),
            note=f"append {axis}",
        )
        agree(
            lambda o3c, a=axis: o3c.Tensor(cube).append(o3c.Tensor(other), a),
            note=f"append {axis}",
        )
    agree(lambda o3c: o3c.concatenate((o3c.Tensor(cube), o3c.Tensor(cube[:1, :, :]))))
    agree(lambda o3c: o3c.concatenate((o3c.Tensor(cube), o3c.Tensor(cube[0]))))
    agree(lambda o3c: o3c.concatenate([o3c.Tensor(cube)]))
    plain, against = (random_array(rng, dtype, (3, 4), special=False) for _ in range(2))
    agree(lambda o3c: o3c.maximum(o3c.Tensor(plain), o3c.Tensor(against)))
    agree(lambda o3c: o3c.minimum(o3c.Tensor(plain), o3c.Tensor(against[0])))
    for bounds in ((1, 3), (-2, 2), (0.5, 1.5), (3, 1)):
        if dtype.startswith("u") and bounds[0] < 0:
            continue  # Open3D wraps the bound, we refuse it
        agree(lambda o3c, b=bounds: o3c.Tensor(plain).clip(*b), note=f"clip {bounds}")
        agree(lambda o3c, b=bounds: o3c.Tensor(plain).clip_(*b), note=f"clip_ {bounds}")
    agree(lambda o3c: o3c.Tensor(plain).nonzero())
    agree(lambda o3c: o3c.Tensor(plain).nonzero(as_tuple=True))
    agree(lambda o3c: o3c.Tensor(plain).isclose(o3c.Tensor(against), 0.5, 1.0))
    agree(lambda o3c: o3c.Tensor(plain).allclose(o3c.Tensor(plain)))
    agree(lambda o3c: o3c.Tensor(plain).allclose(o3c.Tensor(against)))
    agree(lambda o3c: o3c.Tensor(plain).allclose(o3c.Tensor(against[0])))


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_triangles(dtype):
    matrix = random_array(np.random.default_rng(4), dtype, (4, 3))
    for name, diagonal in itertools.product(("triu", "tril", "triul"), range(-5, 5)):
        agree(
            lambda o3c, n=name, d=diagonal: getattr(o3c.Tensor(matrix), n)(d),
            note=f"{name}({diagonal}) {matrix!r}",
        )
        agree(lambda o3c, n=name, d=diagonal: getattr(o3c, n)(o3c.Tensor(matrix), d))


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_algebra(dtype):
    rng = np.random.default_rng(5)
    # Open3D multiplies integers as doubles, so unsigned dtypes get no negative numbers.
    low = 0 if np.dtype(dtype).kind in "ub" else -4
    square, right, tall = (
        rng.integers(low, 5, shape).astype(dtype) for shape in ((4, 4), (4, 2), (6, 3))
    )
    square += np.eye(4).astype(dtype) * np.array(9).astype(dtype) if dtype != "bool" else square
    several = [rng.integers(-4, 5, shape).astype(dtype) for shape in ((6, 2), (6,))]
    near = 1e-4
    for name in ("inv", "lu_ipiv"):
        agree(lambda o3c, n=name: getattr(o3c.Tensor(square), n)(), tolerance=near, note=name)
    agree(lambda o3c: o3c.inv(o3c.Tensor(square)), tolerance=near)
    # Open3D's determinants have the wrong sign for some matrices.
    agree(lambda o3c: abs(o3c.Tensor(square).det()), tolerance=near)
    agree(lambda o3c: abs(o3c.det(o3c.Tensor(square))), tolerance=near)
    for vector in (right, right[:, 0], right[:3]):
        agree(
            lambda o3c, b=vector: o3c.Tensor(square).solve(o3c.Tensor(b)),
            tolerance=near,
            note=f"solve {vector.shape}",
        )
        agree(
            lambda o3c, b=vector: o3c.Tensor(square) @ o3c.Tensor(b),
            tolerance=near,
            note=f"@ {vector.shape}",
        )
    for target in several:
        agree(
            lambda o3c, b=target: o3c.Tensor(tall).lstsq(o3c.Tensor(b)),
            tolerance=near,
            note=f"lstsq {target.shape}",
        )
    for permute in (False, True):
        agree(lambda o3c, p=permute: o3c.Tensor(square).lu(p), tolerance=near)
        agree(lambda o3c, p=permute: o3c.lu(o3c.Tensor(square), p), tolerance=near)
    agree(lambda o3c: [np.abs(part.numpy()) for part in o3c.Tensor(tall).svd()], tolerance=near)
    agree(lambda o3c: o3c.svd(o3c.Tensor(square))[1], tolerance=near)
    for bad in (tall, square[0], square[:0]):
        agree(lambda o3c, a=bad: o3c.Tensor(a).inv(), note=f"inv {bad.shape}")
    agree(lambda o3c: o3c.Tensor(np.zeros((3, 3), dtype)).inv(), note="inv of a singular matrix")


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_geometry_have_the_same_bits(dtype):
    rng = np.random.default_rng(6)
    for _ in range(200):
        inner, many = int(rng.integers(1, 8)), int(rng.integers(1, 3000))
        few_rows, few_columns = int(rng.integers(1, 4)), int(rng.integers(1, 12))
        for rows, columns in ((few_rows, many), (many, few_columns)):
            left = random_array(rng, dtype, (rows, inner), special=False)
            right = random_array(rng, dtype, (inner, columns), special=False)
            agree(lambda o3c, a=left, b=right: o3c.Tensor(a) @ o3c.Tensor(b), note=f"{left.shape}")
            agree(
                lambda o3c, a=left, b=right: o3c.Tensor(a) @ o3c.Tensor(b.T.copy()).T(),
                note=f"{left.shape}, strided",
            )
