"""Linear algebra of tensorhash.core: the equations hold, and bad matrices are refused."""

import numpy as np
import pytest
from oracle import refused, same

import tensorhash.core as o3c

Tensor = o3c.Tensor


def random_matrix(shape, dtype, seed=0):
    matrix = np.random.default_rng(seed).normal(size=shape)
    if shape[0] == shape[-1]:
        matrix += 4 * np.eye(shape[0])
    return Tensor(matrix.astype(dtype))


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def near(got, expected, dtype):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got, expected, atol=2e-5 if dtype == "float32" else 1e-12)


def test_products(dtype):
    a, b = random_matrix((3, 4), dtype), random_matrix((4, 5), dtype, 1)
    near(a @ b, a.numpy() @ b.numpy(), dtype)
    # A vector counts as a matrix with one column, as argument and as result.
    near(a.matmul(b[:, 0]), a.numpy() @ b.numpy()[:, :1], dtype)
    near(o3c.matmul(a, b), a.numpy() @ b.numpy(), dtype)
    same(Tensor([[1, 2], [3, 4]]) @ Tensor([[1], [2]]), np.array([[5], [11]]))
    assert (a[:0] @ b).shape == (0, 5)
    same(a[:, :0] @ b[:0], np.zeros((3, 5), dtype))
    for bad in (a, a[0, :2], Tensor(np.zeros((4, 2, 2), dtype))):
        assert isinstance(refused(lambda bad=bad: a @ bad, "other"), ValueError)


def test_inverse_determinant_and_solutions(dtype):
    a, b = random_matrix((4, 4), dtype), random_matrix((4, 2), dtype, 1)
    identity = np.eye(4)
    near(a @ a.inv(), identity, dtype)
    near(o3c.inv(a).numpy(), a.inv().numpy(), dtype)
    near(a @ a.solve(b), b.numpy(), dtype)
    assert a.solve(b[:, 0]).shape == (4,)
    near(a @ o3c.solve(a, b[:, 0]), b.numpy()[:, :1], dtype)
    near(Tensor([[0, 1], [1, 0]]).to(a.dtype).inv(), [[0, 1], [1, 0]], dtype)
    assert Tensor([[0.0, 1.0], [1.0, 0.0]]).det() == -1
    assert a.det() == pytest.approx(np.linalg.det(a.numpy()), rel=1e-5)
    assert isinstance(o3c.det(a), float)
    for call in (a[:3].inv, a[:3].det, Tensor(np.zeros((2, 2), dtype)).inv):
        assert isinstance(refused(call, "A: "), ValueError)
    assert isinstance(refused(lambda: a.solve(b[:3]), "B: expected 4 rows"), ValueError)


def test_least_squares(dtype):
    a, x = random_matrix((6, 3), dtype), random_matrix((3, 2), dtype, 1)
    near(a.lstsq(a @ x), x.numpy(), dtype)
    near(o3c.lstsq(a, a @ x), x.numpy(), dtype)
    assert isinstance(refused(lambda: a.T().lstsq(x), "rows >= columns"), ValueError)
    flat = Tensor(np.ones((4, 2), dtype))
    assert isinstance(refused(lambda: flat.lstsq(flat[:, 0]), "full rank 2"), ValueError)


def test_lu(dtype):
    a = Tensor(np.array([[0, 2, 1], [4, 1, 0], [2, 5, 3]], dtype))
    p, l, u = a.lu()  # noqa: E741
    near(p @ l @ u, a.numpy(), dtype)
    same(l, np.tril(l.numpy()))
    same(np.diag(l.numpy()).copy(), np.ones(3, dtype))
    same(u, np.triu(u.numpy()))
    permuted = a.lu(permute_l=True)[1]
    near(permuted @ u, a.numpy(), dtype)
    pivots, packed = a.lu_ipiv()
    rows = a.numpy().copy()
    for step, pivot in enumerate(pivots.numpy() - 1):
        rows[[step, pivot]] = rows[[pivot, step]]
    lower = np.tril(packed.numpy(), -1) + np.eye(3)
    near(Tensor((lower @ np.triu(packed.numpy())).astype(dtype)), rows, dtype)
    near(o3c.lu(a)[2], u.numpy(), dtype)


def test_svd(dtype):
    a = random_matrix((5, 3), dtype)
    u, s, vt = a.svd()
    assert (u.shape, s.shape, vt.shape) == ((5, 5), (3,), (3, 3))
    near(u[:, :3] @ Tensor.diag(s) @ vt, a.numpy(), dtype)
    near(o3c.svd(a)[1], s.numpy(), dtype)


def test_products_of_geometry_are_added_in_order(dtype):
    rng = np.random.default_rng(2)
    for rows, inner, columns in ((3, 3, 500), (3, 4, 500), (500, 4, 4), (1, 7, 20), (4, 4, 11)):
        a, b = (rng.normal(size=s).astype(dtype) for s in ((rows, inner), (inner, columns)))
        total = np.zeros((rows, columns), dtype)
        for k in range(inner):
            total = total + a[:, k : k + 1] * b[k : k + 1]
        same(Tensor(a) @ Tensor(b), total)
        same(Tensor(a) @ Tensor(b.T.copy()).T(), total)


def test_cross_products_and_addmm(dtype):
    a, b = random_matrix((5, 3), dtype), random_matrix((1, 3), dtype, 1)
    near(a.cross(b), np.cross(a.numpy(), b.numpy()), dtype)
    near(a.T().cross(b.T(), 0), np.cross(a.numpy(), b.numpy()).T, dtype)
    same(Tensor([1, 2, 3]).cross(Tensor([1, 0, 2])), np.array([4, 1, -2]))
    assert isinstance(refused(lambda: a.cross(b, 0), "expected 3 along axis 0"), ValueError)
    square = random_matrix((3, 3), dtype, 2)
    near(o3c.addmm(b, a, square, 2.0, 0.5), 2 * a.numpy() @ square.numpy() + b.numpy() / 2, dtype)
    bad = lambda: o3c.addmm(a.T(), a, square, 1.0, 1.0)  # noqa: E731
    assert isinstance(refused(bad, "shape"), ValueError)


def test_triangles():
    a = Tensor(np.arange(1, 13).reshape(4, 3))
    for diagonal in range(-3, 3):
        same(a.triu(diagonal), np.triu(a.numpy(), diagonal))
        same(o3c.tril(a, diagonal), np.tril(a.numpy(), diagonal))
    upper, lower = a.triul()
    same(upper, np.triu(a.numpy()))
    same(lower, np.array([[1, 0, 0], [4, 1, 0], [7, 8, 1], [10, 11, 12]]))
    for bad in (-4, 3):
        assert isinstance(refused(lambda bad=bad: a.triu(bad), "diagonal"), ValueError)


@pytest.mark.parametrize("name", ["inv", "det", "svd", "lu", "lu_ipiv"])
def test_integers_have_no_factorisations(name):
    matrix = Tensor([[2, 0], [0, 2]])
    error = refused(getattr(matrix, name), "A: expected Float32 or Float64, got Int64")
    assert isinstance(error, TypeError)
