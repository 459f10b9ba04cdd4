"""Coordinates, maps, voxels and neighbours for any small input, against brute force."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from in_full import times
from kernel_map_oracle import check_all, check_map, pairs_of
from oracle import on_host, same

import tensorhash.coords as thc

SMALL = st.integers(-6, 6)
BATCHES = st.integers(0, 2)
#: Coordinates at the limits of packing, sorting and blocks.
EDGES = st.sampled_from(
    [-(2**31), -131073, -131072, -9, -8, -1, 0, 1, 7, 8, 131071, 131072, 2**31 - 1]
)


def rows_of(columns, values=SMALL, most=30, batches=BATCHES, least=0):
    """int32 [N, columns], the batch first."""
    row = st.tuples(batches, *[values] * (columns - 1))
    lists = st.lists(row, min_size=least, max_size=most)
    return lists.map(lambda rows: np.array(rows, np.int32).reshape(-1, columns))


def first_rows(rows):
    """Maps each row to its first position."""
    where = {}
    for number, row in enumerate(map(tuple, np.asarray(rows).tolist())):
        where.setdefault(row, number)
    return where


# Kernel maps.

sizes = st.tuples(*[st.integers(1, 5)] * 3)
odd_sizes = st.tuples(*[st.sampled_from([1, 3, 5])] * 3)
steps = st.tuples(*[st.integers(1, 3)] * 3)


@settings(max_examples=times(150, 60))
@given(
    ins=st.one_of(rows_of(4), rows_of(4, st.integers(-2, 2), 40, least=20)),
    outs=st.one_of(rows_of(4), rows_of(4, st.integers(-2, 2), 40, least=20)),
    size=st.one_of(odd_sizes, sizes),
    ratio=steps,
    dilation=st.one_of(st.none(), steps),
)
def test_maps_over_three_axes_by_every_path(ins, outs, size, ratio, dilation):
    check_all(ins, outs, ratio, size, dilation and list(dilation), duplicates="first")


#: Orders that a path may rely on: as given, by batch, by block, by all columns.
ORDERS = (
    lambda rows: rows,
    lambda rows: rows[np.argsort(rows[:, 0], kind="stable")],
    lambda rows: rows[np.lexsort((rows // np.int32([1, 8, 8, 8])).T[::-1])],
    lambda rows: rows[np.lexsort(rows.T[::-1])],
)


@settings(max_examples=times(200, 80))
@given(
    rows=rows_of(4, st.integers(0, 3), 60, least=20),  # by default, lists have about five rows
    size=odd_sizes,
    far=st.sampled_from([1, 3]),
    order=st.sampled_from(ORDERS),
)
def test_maps_from_rows_to_themselves_by_every_path(rows, size, far, order):
    """Dense and distinct rows: the mirrored half has pairs within a block and across blocks."""
    rows = order(thc.unique_coords(rows * np.int32([1, far, 1, far])))
    check_all(rows, rows, [1, 1, 1], size)


@settings(max_examples=times(100, 50))
@given(ins=rows_of(4, st.one_of(SMALL, EDGES), batches=EDGES), size=odd_sizes)
def test_maps_at_the_edges_of_the_range(ins, size):
    distinct = thc.unique_coords(ins)
    expected = pairs_of(distinct, distinct, [1] * 3, size)
    for strategy in ("merge", "flat", "hierarchical", None):
        check_map(thc.generate_kernel_map(distinct, distinct, 1, size, strategy=strategy), expected)


@settings(max_examples=times(100, 50))
@given(rows=rows_of(4, most=60), queries=rows_of(4), size=odd_sizes, bits=st.integers(0, 5))
def test_a_table_is_probed_by_coarse_cells_of_any_width(rows, queries, size, bits):
    table = thc.CoordTable.from_coords(rows)
    made = thc.kernel_map_from_size_hierarchical(table, queries, size, 2**bits)
    check_map(made, pairs_of(rows, queries, [1] * 3, size))


# Tables: a history of batches, compared with a dict.

packed_rows = rows_of(4, st.one_of(SMALL, st.sampled_from([-131072, 131071])), 20)
wide_rows = rows_of(4, st.one_of(SMALL, EDGES), 20, EDGES)
by = st.lists(st.tuples(st.just(0), *[st.integers(-1, 1)] * 3), min_size=1, max_size=5)
offsets = by.map(lambda rows: np.array(rows, np.int32))


def steps_of(rows):
    calls = st.one_of(
        st.tuples(st.just("insert"), rows),
        st.tuples(st.just("search"), rows),
        st.tuples(st.just("expand"), st.tuples(rows_of(4, SMALL, 8), offsets)),
    )
    return st.lists(calls, max_size=8)


def check_history(table, history):
    kept = []
    for call, batch in history:
        if call == "search":
            where = first_rows(kept)
            expected = [where.get(tuple(row), -1) for row in batch.tolist()]
            for mode in thc.SearchMode:
                assert table.search(batch, mode).tolist() == expected
        elif call == "insert":
            table.insert(batch)
            kept += batch.tolist()
        else:
            base, shifts = batch
            table.expand_with_offsets(base, shifts)
            for row in (base[None] + shifts[:, None]).reshape(-1, 4).tolist():
                kept += [row] * (row not in kept)
        assert table.num_entries == len(kept)
        if kept:
            assert on_host(table.vector_keys).tolist() == kept
            assert table.unique_index.tolist() == list(first_rows(kept).values())


@settings(max_examples=times(100, 50))
@given(history=steps_of(packed_rows), double=st.booleans())
def test_a_packed_table_is_a_dict_of_rows(history, double):
    empty = np.empty((0, 4), np.int32)
    check_history(thc.PackedHashTable.from_coords(empty, use_double_hash=double), history)
    check_history(thc.PackedHashTable(1024, use_double_hash=double), history)


@settings(max_examples=times(100, 50))
@given(history=steps_of(wide_rows), double=st.booleans())
def test_a_coordinate_table_is_a_dict_of_rows_whatever_its_keys_are(history, double):
    check_history(thc.CoordTable(use_double_hash=double, key_dim=4), history)


# Operations.


def by_batch(rows, batches):
    """(rows, offsets): distinct, batch by batch, in order of first occurrence."""
    kept = sorted(dict.fromkeys(map(tuple, rows)), key=lambda row: row[0])
    counts = [sum(row[0] == b for row in kept) for b in range(batches)]
    return kept, [0, *np.cumsum(counts).tolist()]


def check_batched(made, rows, batches):
    kept, bounds = by_batch(rows, batches)
    assert list(map(tuple, made[0].tolist())) == kept
    assert made[1].tolist() == bounds


@settings(max_examples=times(100, 50))
@given(rows=rows_of(4), wide=st.booleans())
def test_unique_coords_are_those_of_a_dict(rows, wide):
    rows = rows.astype(np.int64) * 2**40 if wide else rows
    found, index, inverse, counts = thc.unique_coords(rows, True, True, True)
    where = first_rows(rows)
    assert list(map(tuple, found.tolist())) == list(where)
    assert index.tolist() == list(where.values())
    same(found[inverse], rows)
    assert counts.tolist() == [rows.tolist().count(list(row)) for row in where]


@settings(max_examples=times(100, 50))
@given(
    rows=rows_of(4, st.one_of(SMALL, EDGES)),
    stride=st.tuples(*[st.sampled_from([1, 2, 3, 2**31 - 1])] * 3),
    more=st.integers(0, 2),
)
def test_strided_coordinates_are_floors(rows, stride, more):
    cells = [
        (b, *(p // s for p, s in zip(place, stride, strict=True))) for b, *place in rows.tolist()
    ]
    batches = int(rows[:, 0].max(initial=-1)) + 1 + more
    check_batched(thc.stride_coords(rows, stride, num_batches=batches), cells, batches)


@settings(max_examples=times(100, 50))
@given(
    rows=rows_of(3, most=15),
    size=st.tuples(*[st.integers(1, 4)] * 2),
    dilation=st.tuples(*[st.integers(1, 3)] * 2),
    chunk=st.one_of(st.none(), st.integers(1, 20)),
)
def test_expanded_coordinates_are_all_sums(rows, size, dilation, chunk):
    by = thc.kernel_offsets_from_size(size, dilation)
    sums = (rows[None] + by[:, None]).reshape(-1, 3).tolist()
    batches = int(rows[:, 0].max(initial=-1)) + 1
    check_batched(thc.expand_coords(rows, size, dilation, chunk), rows.tolist() + sums, batches)


@settings(max_examples=60)
@given(
    rows=rows_of(4, most=15),
    size=st.tuples(*[st.integers(1, 3)] * 3),
    stride=steps,
    dilation=steps,
    transposed=st.booleans(),
)
def test_generative_convolutions_use_every_input(rows, size, stride, dilation, transposed):
    """Every offset has a pair for every input, if transposed or with stride 1."""
    rows = thc.unique_coords(rows)
    stride = stride if transposed else (1, 1, 1)
    out, _, made = thc.convolution_map(
        rows, size, stride, dilation, generative=True, transposed=transposed
    )
    assert all(np.array_equal(np.sort(ins), np.arange(len(rows))) for ins, _ in made)
    assert len(np.unique(made.out_maps)) == len(out) == len(first_rows(out))


# Points.

halves = st.integers(-20, 20).map(lambda n: n / 4)  # exact, so that brute force may use any formula
point = st.tuples(halves, halves)


def cloud(most):
    return st.lists(point, max_size=most).map(lambda rows: np.array(rows, float).reshape(-1, 2))


@settings(max_examples=times(100, 50))
@given(
    points=cloud(30),
    size=st.tuples(*[st.sampled_from([0.25, 0.5, 1.0, 3.0])] * 2),
    origin=halves,
    word=st.sampled_from(["first", "last", "sum", "mean", "min", "max"]),
    data=st.data(),
)
def test_voxels_are_floors_and_join_their_points(points, size, origin, word, data):
    count = len(points)
    batch = np.array(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), int)
    made = thc.voxelize(points, size, origin, word, batch=batch)
    cells = np.column_stack([batch, np.floor((points - origin) / size)]).astype(np.int32)
    where = first_rows(cells)
    assert list(map(tuple, made.coords.tolist())) == list(where)
    assert made.index.tolist() == list(where.values())
    same(made.coords[made.inverse], cells)
    join = {
        "first": lambda own: own[0],
        "last": lambda own: own[-1],
        "sum": lambda own: own.sum(axis=0),
        "mean": lambda own: own.mean(axis=0),
        "min": lambda own: own.min(axis=0),
        "max": lambda own: own.max(axis=0),
    }[word]
    for voxel, row in enumerate(where):
        own = points[(cells == row).all(axis=1)]
        assert made.counts[voxel] == len(own)
        np.testing.assert_allclose(made.features[voxel], join(own), rtol=1e-15)


def neighbours(points, queries, batch, query_batch, keep):
    """[(rows, distances)] of each query, nearest first, filtered by `keep`."""
    found = []
    for query, own in zip(queries, query_batch, strict=True):
        squares = ((points - query) ** 2).sum(axis=1)
        order = sorted(np.flatnonzero(batch == own), key=lambda row: (squares[row], row))
        found.append(keep([(int(row), np.sqrt(squares[row])) for row in order]))
    return found


@settings(max_examples=times(100, 50))
@given(
    points=cloud(40),
    queries=cloud(10),
    k=st.integers(0, 6),
    radius=st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0]),
    data=st.data(),
)
def test_neighbours_are_those_of_all_distances_sorted(points, queries, k, radius, data):
    batches = [
        np.array(
            data.draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows))), int
        )
        for rows in (points, queries)
    ]
    nearest = thc.knn_search(points, queries, k, *batches)
    within = thc.radius_search(points, queries, radius, *batches)
    few = thc.radius_search(points, queries, radius, *batches, max_neighbors=k)

    def near(order):
        return [(row, distance) for row, distance in order if distance <= radius]

    for made, keep in (
        (nearest, lambda order: order[:k]),
        (within, near),
        (few, lambda order: near(order)[:k]),
    ):
        expected = neighbours(points, queries, *batches, keep)
        assert np.diff(made.offsets).tolist() == [len(found) for found in expected]
        assert made.indices.tolist() == [row for found in expected for row, _ in found]
        assert made.distances.tolist() == [far for found in expected for _, far in found]
