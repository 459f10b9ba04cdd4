"""Convolutions over repeated voxels: with duplicates="first", the first of equal voxels counts."""

import itertools

import numpy as np
import pytest

import tensorhash.coords as thc

torch = pytest.importorskip("torch")

from tensorhash.torch import SparseConv3d, stride_features  # noqa: E402

MODES = [
    {},
    {"stride": 2},
    {"stride": (1, 2, 3), "generative": True},
    {"generative": True},
    {"stride": 2, "transposed": True, "generative": True},
    {"stride": 2, "stride_mode": "reduce_and_stride"},
    {"stride": 1, "stride_mode": "reduce_and_stride"},
]


def repeated_rows(seed=0, count=300):
    """(rows with many repeats, the distinct rows, the first row of each, the inverse)."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 5, (count, 4), dtype=np.int32)
    rows[:, 0] = np.sort(rng.integers(0, 2, count))
    distinct, first, which = thc.unique_coords(rows, return_index=True, return_inverse=True)
    assert len(distinct) < count
    return rows, distinct, first, which


def triples(made):
    """Every (group, input row, output row), in the order of the map."""
    return [
        (k, i, o)
        for k, (ins, outs) in enumerate(made)
        for i, o in zip(ins.tolist(), outs.tolist(), strict=True)
    ]


def check_order(made):
    """Groups ascend by output row, then by input row."""
    assert triples(made) == sorted(triples(made), key=lambda t: (t[0], t[2], t[1]))


@pytest.mark.parametrize("options", MODES, ids=str)
def test_the_map_is_that_of_the_distinct_rows(options):
    rows, distinct, first, which = repeated_rows()
    with pytest.raises(ValueError, match='coords: row .* repeats .*, or pass duplicates="first"'):
        thc.convolution_map(rows, 3, **options)
    out, offsets, made = thc.convolution_map(rows, 3, **options, duplicates="first")
    plain_out, plain_offsets, plain = thc.convolution_map(distinct, 3, **options)
    check_order(made)
    if options.get("stride_mode") and options["stride"] == 2:
        assert triples(made) == triples(plain)
        np.testing.assert_array_equal(out, plain_out)
        assert made.identity_map_index == plain.identity_map_index == 13
        return
    assert made.num_in == len(rows)
    assert made.num_out == len(out)
    same_order = options.get("stride", 1) == 1 and not options.get("generative")
    if same_order:
        np.testing.assert_array_equal(out, rows)
        want = [
            (k, first[i], o)
            for k, i, d in triples(plain)
            for o in np.flatnonzero(which == d).tolist()
        ]
        assert offsets.tolist() == np.searchsorted(rows[:, 0], [0, 1, 2]).tolist()
    else:
        np.testing.assert_array_equal(out, plain_out)
        np.testing.assert_array_equal(offsets, plain_offsets)
        want = [(k, first[i], o) for k, i, o in triples(plain)]
    assert sorted(triples(made)) == sorted(want)
    assert made.identity_map_index is None


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_equal_given_output_rows_get_equal_pairs(transposed, stride):
    rows, distinct, first, _ = repeated_rows(1)
    given, given_distinct, _, given_which = repeated_rows(2, 200)
    options = {"stride": stride, "transposed": transposed}
    out, offsets, made = thc.convolution_map(
        rows, 3, out_coords=given, **options, duplicates="first"
    )
    assert out is given
    check_order(made)
    _, _, plain = thc.convolution_map(distinct, 3, out_coords=given_distinct, **options)
    want = [
        (k, first[i], o)
        for k, i, d in triples(plain)
        for o in np.flatnonzero(given_which == d).tolist()
    ]
    assert sorted(triples(made)) == sorted(want)
    assert offsets.tolist() == np.searchsorted(given[:, 0], [0, 1, 2]).tolist()


def test_rows_without_repeats_give_the_usual_map():
    _, distinct, _, _ = repeated_rows(3)
    for options in MODES:
        one = thc.convolution_map(distinct, 3, **options)[2]
        other = thc.convolution_map(distinct, 3, **options, duplicates="first")[2]
        assert triples(one) == triples(other)
        assert one.identity_map_index == other.identity_map_index
        assert one.strategy == other.strategy


def test_batches_out_of_order_and_num_batches():
    rows = np.int32([[1, 0, 0], [0, 1, 1], [1, 0, 0]])
    out, offsets, _ = thc.convolution_map(rows, 3, duplicates="first")
    assert offsets is None
    np.testing.assert_array_equal(out, rows)
    ascending = rows[[1, 0, 2]]
    offsets = thc.convolution_map(ascending, 3, duplicates="first", num_batches=4)[1]
    assert offsets.tolist() == [0, 1, 3, 3, 3]
    with pytest.raises(ValueError, match="num_batches|batches from 0 to 0"):
        thc.convolution_map(ascending, 3, duplicates="first", num_batches=1)
    with pytest.raises(ValueError, match='duplicates: expected "error" or "first", got .last'):
        thc.convolution_map(rows, 3, duplicates="last")


@pytest.mark.parametrize("options", MODES, ids=str)
def test_the_module_gives_the_result_of_the_distinct_voxels(options):
    rows, distinct, first, which = (torch.from_numpy(part) for part in repeated_rows(4))
    conv = SparseConv3d(3, 2, 3, **options, duplicates="first").double()
    features = torch.randn(len(rows), 3, dtype=torch.float64, requires_grad=True)
    out, where = conv(features, rows)
    assert "duplicates='first'" in repr(conv)
    plain = SparseConv3d(3, 2, 3, **options).double()
    plain.load_state_dict(conv.state_dict())
    with pytest.raises(ValueError, match="coords: row .* repeats"):
        plain(features, rows)
    expected, plain_where = plain(features[first], distinct)
    if len(where) == len(rows) and torch.equal(where, rows):
        expected = expected[which]
        plain_where = plain_where[which]
    assert torch.equal(where, plain_where)
    torch.testing.assert_close(out, expected)
    (grad,) = torch.autograd.grad(out.sum(), features)
    others = np.setdiff1d(np.arange(len(rows)), first.numpy())
    assert not grad[others].any()  # only the first of equal voxels contributes
    with pytest.raises(ValueError, match="features: expected shape"):
        conv(features[:-1], rows)


def test_down_and_up_again_over_repeated_voxels():
    rows, *_ = (torch.from_numpy(part) for part in repeated_rows(5))
    down = SparseConv3d(1, 4, 3, 2, duplicates="first")
    up = SparseConv3d(4, 1, 3, 2, transposed=True, duplicates="first")
    coarse, where = down(torch.randn(len(rows), 1), rows)
    fine, back = up(coarse, where, rows)
    assert back is rows
    by_voxel = {}
    for row, value in zip(rows.tolist(), fine[:, 0].tolist(), strict=True):
        assert by_voxel.setdefault(tuple(row), value) == value


def test_duplicates_is_checked_when_the_module_is_made():
    with pytest.raises(ValueError, match='duplicates: expected "error" or "first"'):
        SparseConv3d(1, 1, 3, duplicates="sum")


def test_a_pooling_still_joins_all_rows():
    rows = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    joined, _ = stride_features(torch.tensor([[1.0], [2.0], [4.0]]), rows, 2, "sum")
    assert joined.tolist() == [[7.0]]


def test_no_rows():
    nothing = torch.empty(0, 4, dtype=torch.int32)
    for options, duplicates in itertools.product(MODES, ("error", "first")):
        conv = SparseConv3d(2, 3, 3, **options, duplicates=duplicates)
        assert conv(torch.empty(0, 2), nothing)[0].shape == (0, 3)


def test_rows_that_change_during_the_call_are_refused_with_the_right_advice(monkeypatch):
    """Writes between the two passes of `unique`, as another thread could."""
    from tensorhash.coords import _repeats

    rows = np.zeros((4, 4), np.int32)
    rows[:, 1] = np.arange(4)
    unique = _repeats._core.unique

    class Core:
        @staticmethod
        def unique(array, *options):
            assert not np.shares_memory(array, rows)
            rows[:] = 0
            return unique(array, *options)

    monkeypatch.setattr(_repeats, "_core", Core)
    with pytest.raises(ValueError, match="^coords: .*written to during this call; pass a copy$"):
        thc.convolution_map(rows, 3, duplicates="first")
