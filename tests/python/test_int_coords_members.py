"""Members of IntCoords that follow WarpConvNet: grid, strides, prune and sort."""

import numpy as np
import pytest

from tensorhash.coords import POINT_ORDERING, IntCoords, stride_coords

torch = pytest.importorskip("torch")

ROWS = np.random.default_rng(3).integers(-50, 50, (400, 3), dtype=np.int32)


def items(coords):
    return [np.asarray(coords[item]).tolist() for item in range(coords.batch_size)]


def test_positional_order_is_warpconvnets_and_the_grid_is_kept():
    coords = IntCoords(ROWS, [0, 150, 150, 400], 0.05, (2, 2, 4), "cpu", voxel_origin=[1, 2, 3])
    same = [coords.unique(), coords.sort(), coords.expand(2), coords.prune(ROWS[:, 0] > 0)]
    for made in [coords, *same]:
        assert (made.voxel_size, made.stride, made.tensor_stride) == (0.05, (2, 2, 4), (2, 2, 4))
        assert made.voxel_origin.tolist() == [1.0, 2.0, 3.0]
        assert made.num_spatial_dims == made.num_axes == 3
        assert made.batch_size == 3
    np.testing.assert_array_equal(coords.batched_tensor, ROWS)
    coarse = coords.strided((1, 2, 3))
    assert coarse.stride == (2, 4, 12)
    assert coarse.voxel_size == 0.05
    want = stride_coords(coords.batch_indexed_coordinates, (1, 2, 3), num_batches=3)[0]
    np.testing.assert_array_equal(coarse.batch_indexed_coordinates, want)
    plain = IntCoords(ROWS)
    assert (plain.voxel_size, plain.voxel_origin, plain.stride) == (None, None, (1, 1, 1))
    per_axis = IntCoords.from_batched(np.zeros((1, 4), int), voxel_size=[1, 2, 3], voxel_origin=0)
    assert per_axis.voxel_size == (1.0, 2.0, 3.0)
    assert per_axis.voxel_origin.tolist() == [0.0, 0.0, 0.0]


def test_results_are_copies():
    coords = IntCoords(ROWS, voxel_origin=[1, 2, 3])
    coords.voxel_origin[0] = 9
    coords.batched_tensor[0] = 9
    assert coords.voxel_origin[0] == 1
    np.testing.assert_array_equal(coords.batched_tensor, ROWS)
    assert isinstance(IntCoords(torch.from_numpy(ROWS), voxel_origin=0).voxel_origin, torch.Tensor)


def test_the_tensor_stride_can_be_set():
    coords = IntCoords(ROWS, voxel_size=2)
    coords.set_tensor_stride(4)
    assert coords.stride == (4, 4, 4)
    coords.set_tensor_stride((1, 2, 3))
    assert coords.stride == (1, 2, 3)
    for wrong in (0, (1, 2), 2.5):
        with pytest.raises((TypeError, ValueError), match="tensor_stride: expected"):
            coords.set_tensor_stride(wrong)
    assert (coords.stride, coords.voxel_size) == ((1, 2, 3), 2.0)
    with pytest.raises(AttributeError):
        coords.stride = 2


@pytest.mark.parametrize("take", [np.asarray, torch.as_tensor, list])
def test_prune_keeps_rows_in_order_and_empty_items(take):
    coords = IntCoords(ROWS, [0, 150, 150, 400])
    mask = ROWS[:, 1] > 10
    mask[:150] = False
    kept = coords.prune(take(mask))
    assert items(kept) == [[], [], ROWS[mask].tolist()]
    assert kept.offsets.tolist() == [0, 0, 0, int(mask.sum())]
    assert len(coords) == 400
    assert IntCoords([]).prune(np.empty(0, bool)).batch_size == 1


def test_prune_refuses_arguments_that_are_not_masks():
    coords = IntCoords(ROWS)
    with pytest.raises(TypeError, match="mask: expected bool, got int64; pass mask != 0"):
        coords.prune(np.arange(400))
    with pytest.raises(ValueError, match=r"mask: expected shape \(400,\), one per row, got \(3,\)"):
        coords.prune(np.ones(3, bool))


def code(row, least, axes):
    """The Morton code in plain Python: axis axes[0] has the lowest bit of each group."""
    number = 0
    for bit in range(70):
        for place, axis in enumerate(axes):
            number |= (int(row[axis]) - int(least[axis]) >> bit & 1) << bit * len(axes) + place
    return number


@pytest.mark.parametrize(
    ("ordering", "axes"),
    [
        (POINT_ORDERING.MORTON_XYZ, (0, 1, 2)),
        ("morton", (0, 1, 2)),
        ("MORTON_XZY", (0, 2, 1)),
        (POINT_ORDERING.MORTON_YXZ, (1, 0, 2)),
        ("morton_yzx", (1, 2, 0)),
        (POINT_ORDERING.MORTON_ZXY, (2, 0, 1)),
        ("morton_zyx", (2, 1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sort_follows_the_curve_in_every_item(ordering, axes, dtype):
    info = np.iinfo(dtype)
    rows = np.concatenate([ROWS.astype(dtype), ROWS[:40].astype(dtype)])
    rows[7], rows[300] = info.min, info.max  # codes of up to 192 bits
    coords = IntCoords(rows, [0, 150, 150, 440])
    least = rows.min(axis=0)
    made = coords.sort(ordering)
    for item in range(3):
        part = np.asarray(coords[item]).tolist()
        want = sorted(part, key=lambda row: code(row, least, axes))
        assert np.asarray(made[item]).tolist() == want


def test_sort_of_other_numbers_of_axes_and_of_no_rows():
    for axes in (1, 2, 5):
        rows = np.random.default_rng(axes).integers(-9, 9, (100, axes))
        want = sorted(rows.tolist(), key=lambda row: code(row, rows.min(0), range(axes)))
        assert IntCoords(rows).sort().coordinates.tolist() == want
    assert IntCoords([]).sort().coordinates.shape == (0, 3)
    np.testing.assert_array_equal(IntCoords(ROWS).sort("random").coordinates, ROWS)
    with pytest.raises(ValueError, match="ordering: expected MORTON_XYZ for coordinates of 2 axes"):
        IntCoords(ROWS[:, :2]).sort("morton_zyx")
    with pytest.raises(ValueError, match='ordering: expected a POINT_ORDERING or one of "morton"'):
        IntCoords(ROWS).sort("hilbert")


def test_stride_coords_takes_an_order_as_third_argument():
    batched = np.column_stack([np.arange(400) % 3, ROWS]).astype(np.int32)
    plain, offsets = stride_coords(batched, 2)
    for order in (POINT_ORDERING.MORTON_XYZ, "morton_zyx"):
        made, bounds = stride_coords(batched, 2, order)
        np.testing.assert_array_equal(bounds, offsets)
        axes = (0, 1, 2) if order is POINT_ORDERING.MORTON_XYZ else (2, 1, 0)
        least = plain[:, 1:].min(axis=0)
        for b in range(3):
            rows = plain[offsets[b] : offsets[b + 1]].tolist()
            want = sorted(rows, key=lambda row: code(row[1:], least, axes))
            assert made[offsets[b] : offsets[b + 1]].tolist() == want
    np.testing.assert_array_equal(stride_coords(batched, 2, POINT_ORDERING.RANDOM)[0], plain)
    with pytest.raises(ValueError, match="order: expected a POINT_ORDERING or one of .* got 3"):
        stride_coords(batched, 2, 3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"voxel_size": 0}, "voxel_size: expected numbers above 0, got 0"),
        ({"voxel_size": [1, 2]}, "voxel_size: expected a number or 3, one per axis"),
        ({"voxel_size": "a"}, "voxel_size: expected a number"),
        ({"voxel_origin": [1]}, "voxel_origin: expected a number or 3, one per axis"),
        ({"device": "cuda"}, "device: "),
        ({"device": 3}, "device: expected a name"),
    ],
)
def test_errors_name_the_argument(options, text):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=text):
        IntCoords(ROWS, **options)
