"""update: steps of tensorhash.optim, against torch.optim and plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import same, snapshot

import tensorhash
from tensorhash.optim import SGD, Adagrad, Adam, AdamW, RowWiseAdagrad

DIM = 4
OPTIMIZERS = {
    "sgd": (SGD, {"lr": 0.1}),
    "sgd-momentum": (SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "sgd-nesterov": (SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
    "adagrad": (Adagrad, {"lr": 0.1}),
    "adagrad-more": (
        Adagrad,
        {"lr": 0.1, "weight_decay": 0.02, "initial_accumulator_value": 0.3, "eps": 1e-6},
    ),
    "adam": (Adam, {"lr": 0.02}),
    "adam-decay": (Adam, {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.1}),
    "adam-decoupled": (Adam, {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "adamw": (AdamW, {"lr": 0.02}),
}


def table_for(optimizer, dtype="float32", shape=(DIM,)):
    return tensorhash.HashMap(0, "int64", (), **optimizer.columns(dtype, shape))


def torch_steps(name, start, keys, gradients):
    """Makes each key a parameter with its own torch optimizer, stepped row by row."""
    torch = pytest.importorskip("torch")
    cls, settings = OPTIMIZERS[name]
    settings = dict(settings)
    kind = getattr(torch.optim, cls.__name__)
    if settings.pop("decoupled_weight_decay", False):
        kind = torch.optim.AdamW
    parameters, optimizers = {}, {}
    for row, key in enumerate(keys.tolist()):
        if key not in parameters:
            parameters[key] = torch.nn.Parameter(torch.from_numpy(start[row].copy()))
            optimizers[key] = kind([parameters[key]], **settings)
        parameters[key].grad = torch.from_numpy(gradients[row].copy())
        optimizers[key].step()
    return {key: value.detach().numpy() for key, value in parameters.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_equal_those_of_torch(name, dtype):
    cls, settings = OPTIMIZERS[name]
    optimizer = cls(**settings)
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 40, 300)
    start = rng.normal(size=(300, DIM)).astype(dtype)
    gradients = rng.normal(size=(300, DIM)).astype(dtype)
    table = table_for(optimizer, dtype)
    for part in (slice(0, 170), slice(170, 300)):
        table.update(keys[part], gradients[part], optimizer, missing="insert", initial=start[part])
    wanted = torch_steps(name, start, keys, gradients)
    got = table.get(list(wanted))
    got = got[0] if isinstance(got, tuple) else got
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(got, np.array(list(wanted.values())), rtol=tolerance, atol=tolerance)
    table.validate()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_row_wise_adagrad_keeps_one_number_per_key(dtype, decay):
    adagrad = RowWiseAdagrad(lr=0.1, weight_decay=decay, initial_accumulator_value=0.2, eps=1e-6)
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 40, 300)
    gradients = rng.normal(size=(300, DIM)).astype(dtype)
    table = table_for(adagrad, dtype)
    table.update(keys, gradients, adagrad, missing="insert", initial=1.0)
    weights, sums = np.ones((40, DIM)), np.zeros(40)
    for key, row in zip(keys, gradients.astype(np.float64), strict=True):
        gradient = row + decay * weights[key]
        sums[key] += np.mean(gradient**2)
        weights[key] -= 0.1 * gradient / (np.sqrt(0.2 + sums[key]) + 1e-6)
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    got = table.get(np.arange(40))
    assert got[1].shape == (40,)
    np.testing.assert_allclose(got[0], weights, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got[1], sums, rtol=tolerance)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_summed_duplicates_are_one_step_of_the_summed_gradient(name):
    cls, settings = OPTIMIZERS[name]
    optimizer = cls(**settings)
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 50, 400)
    gradients = rng.normal(size=(400, DIM))
    summed = np.zeros((50, DIM))
    np.add.at(summed, keys, gradients)
    table, single = table_for(optimizer, "float64"), table_for(optimizer, "float64")
    for _ in range(3):
        table.update(keys, gradients, optimizer, missing="insert", duplicates="sum")
        distinct = np.unique(keys)
        single.update(distinct, summed[distinct], optimizer, missing="insert")
    for got, wanted in zip(table.get(distinct), single.get(distinct), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-12)


@given(
    st.lists(st.integers(0, 6), max_size=30),
    st.lists(st.integers(0, 6), max_size=5, unique=True),
    st.sampled_from(["skip", "insert"]),
)
def test_sgd_agrees_with_a_dict_row_by_row(rows, there, missing):
    table = table_for(SGD(), "float64", ())
    table.insert(there, np.array([float(key) for key in there]))
    weights = {key: float(key) for key in there}
    gradients = np.arange(len(rows), dtype=np.float64)
    indices, found = table.update(rows, gradients, SGD(lr=0.5), missing=missing, initial=None)
    expected = []
    for key, gradient in zip(rows, gradients.tolist(), strict=True):
        expected.append(key in weights)
        if key in weights or missing == "insert":
            weights[key] = weights.get(key, 0.0) - 0.5 * gradient
    assert found.tolist() == expected
    same(indices, table.find(rows)[0])
    listed, values = table.items()
    assert dict(zip(listed.tolist(), values.tolist(), strict=True)) == weights


def test_results_are_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 3000, 30_000)
    gradients = rng.normal(size=(30_000, DIM)).astype(np.float32)
    images = set()
    for threads in (1, 2, 8):
        tensorhash.set_num_threads(threads)
        table = table_for(Adam(), "float32")
        table.update(keys, gradients, Adam(), missing="insert")
        table.update(keys, gradients, Adam(), duplicates="sum")
        images.add(b"".join(np.asarray(column).tobytes() for column in table.items()[1]))
    assert len(images) == 1


def test_columns_and_values_make_the_table_and_its_rows():
    assert SGD().columns("float32", 3) == {
        "value_dtypes": ["float32"],
        "value_element_shapes": [(3,)],
    }
    assert Adam().columns("float16", (2, 3)) == {
        "value_dtypes": ["float16", "float32", "float32", "int64"],
        "value_element_shapes": [(2, 3), (2, 3), (2, 3), ()],
    }
    adam = Adam(lr=1.0)
    table = table_for(adam)
    weights = np.ones((2, DIM), dtype=np.float32)
    table.insert([1, 2], adam.values(weights))
    table.update([2], weights[:1], adam)
    np.testing.assert_allclose(table.get([1, 2])[0], [[1] * DIM, [0] * DIM], atol=1e-6)
    assert table.get([1, 2])[3].tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_keep_their_state_in_float32(dtype):
    torch = pytest.importorskip("torch")
    halves = getattr(torch, dtype)
    adagrad = Adagrad(lr=0.5)
    table = table_for(adagrad, halves, ())
    keys = torch.tensor([5, 6])
    gradients = torch.tensor([2.0, -4.0], dtype=halves)
    _, found = table.update(keys, gradients, adagrad, missing="insert")
    assert isinstance(found, torch.Tensor)
    weights, state = table.get(keys)
    assert weights.dtype == halves
    assert weights.tolist() == [-0.5, 0.5]
    assert state.dtype == torch.float32
    assert state.tolist() == [4.0, 16.0]


def test_missing_keys_are_an_error_if_asked_and_nothing_changes():
    table = table_for(SGD())
    table.activate([1, 2])
    before = snapshot(table)
    gradients = np.ones((3, DIM), dtype=np.float32)
    with pytest.raises(KeyError, match=r"1 rows are not in the table, the first is row 2"):
        table.update([1, 2, 3], gradients, SGD(), missing="error")
    with pytest.raises(ValueError, match=r"gradients: expected 2 rows, as many as keys, got 3"):
        table.update([1, 2], gradients, SGD())
    with pytest.raises(TypeError, match=r"gradients: expected float32, got float64"):
        table.update([1, 2, 3], gradients.astype(np.float64), SGD())
    with pytest.raises(ValueError, match=r'missing: expected "skip", "insert" or "error"'):
        table.update([1, 2, 3], gradients, SGD(), missing="drop")
    with pytest.raises(ValueError, match=r'duplicates: expected "in_order" or "sum"'):
        table.update([1, 2, 3], gradients, SGD(), duplicates="mean")
    with pytest.raises(
        ValueError, match=r"Adam needs 4 value columns .* this table has 1; .*optimizer's columns"
    ):
        table.update([1, 2, 3], gradients, Adam())
    with pytest.raises(TypeError, match=r"optimizer: expected tensorhash.optim"):
        table.update([1, 2, 3], gradients, "adam")
    with pytest.raises(ValueError, match=r"initial: .* missing is not \"insert\""):
        table.update([1, 2, 3], gradients, SGD(), initial=1.0)
    assert snapshot(table) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(lr=-1), "lr: expected a finite number of at least 0, got -1"),
        (lambda: SGD(lr=float("nan")), "lr: expected a finite number"),
        (lambda: SGD(nesterov=True), "momentum: expected more than 0 with nesterov"),
        (lambda: Adam(betas=(1.0, 0.9)), "beta1: expected 0 <= beta1 < 1"),
        (lambda: Adagrad(eps=-1e-3), "eps: expected a finite number of at least 0"),
    ],
)
def test_hyperparameters_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_string_is_not_a_learning_rate():
    with pytest.raises(TypeError, match="lr: expected a number, got 'fast'"):
        SGD(lr="fast")
    with pytest.raises(TypeError, match=r"lr: expected a number, got array\(\[1\., 1\.\]\)"):
        Adam(np.ones(2))


def test_a_tensor_is_not_a_learning_rate():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"lr: expected a number, got tensor\(\[1\., 1\.\]\)"):
        Adam(torch.ones(2))


def test_strided_and_swapped_gradients_are_read_right():
    table = table_for(SGD(), "float32", (2,))
    table.activate([1, 2, 3])
    gradients = np.arange(12, dtype=np.float32).reshape(6, 2)[::-2]
    table.update([1, 2, 3], gradients, SGD(lr=1.0))
    same(table.get([1, 2, 3]), -gradients)
    table.update([1, 2, 3], (-gradients).astype(">f4"), SGD(lr=1.0))
    same(table.get([1, 2, 3]), np.zeros((3, 2), dtype=np.float32))
    table.update([], np.empty((0, 2), dtype=np.float32), SGD())


def test_learning_rates_may_change_between_updates():
    sgd = SGD(lr=1.0)
    table = table_for(sgd, "float64", ())
    table.update([1], np.array([1.0]), sgd, missing="insert")
    sgd.lr = 0.25
    table.update([1], np.array([1.0]), sgd)
    assert table.get([1]).tolist() == [-1.25]
    assert repr(sgd) == "SGD(lr=0.25, momentum=0.0, weight_decay=0.0, nesterov=False)"
