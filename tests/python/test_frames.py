"""pandas, polars and Arrow: a column or frame is read exactly or refused with working advice.

Over 400 lines: all tests share the frames and the table of calls.
"""

import re

import numpy as np
import pytest
from array_calls import CALLS, plain
from oracle import same

import tensorhash as th

BIG = [2**53, 2**53 + 1, 7]
NULL = [2**53, 2**53 + 1, None]


def _pandas():
    return pytest.importorskip("pandas")


def _pandas_arrow():
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pandas")


def _polars():
    return pytest.importorskip("polars")


def _arrow():
    return pytest.importorskip("pyarrow")


# How each library makes a column from a list (None is a null) and a dtype by NumPy's name.
def _polars_dtype(name):
    return getattr(_polars(), name.title().replace("Uint", "UInt"))


COLUMNS = {
    "pandas nullable": lambda v, t: _pandas().Series(v, dtype=t.title().replace("Uint", "UInt")),
    "pandas index": lambda v, t: _pandas().Index(v, dtype=t.title().replace("Uint", "UInt")),
    "pandas array": lambda v, t: _pandas().array(v, dtype=t.title().replace("Uint", "UInt")),
    "pandas arrow": lambda v, t: _pandas_arrow().Series(
        v, dtype=f"{t.replace('float64', 'double')}[pyarrow]"
    ),
    "polars": lambda v, t: _polars().Series("x", v, dtype=_polars_dtype(t)),
    "arrow": lambda v, t: _arrow().array(v, type=t),
    "arrow chunks": lambda v, t: _arrow().chunked_array([v[:1], v[1:]], type=t),
}
FRAMES = {
    "pandas nullable": lambda columns: _pandas().DataFrame(columns),
    "pandas arrow": lambda columns: _pandas_arrow().DataFrame(columns),
    "polars": lambda columns: _polars().DataFrame(columns),
    "arrow": lambda columns: _arrow().table(columns),
    "arrow batch": lambda columns: _arrow().record_batch(columns),
}


def column(kind, values, dtype="int64"):
    return COLUMNS.get(kind, COLUMNS["arrow"])(values, dtype)


def frame(kind, columns, dtypes):
    made = {
        name: column(kind, values, dtype)
        for (name, values), dtype in zip(columns.items(), dtypes, strict=True)
    }
    return FRAMES[kind](made)


def way_out(message, **names):
    """Runs the code that a message suggests after "pass", "with" or "cast with"."""
    code = re.search(
        r"(?:pass|with) ((?:np|pa|torch|array|keys|points)\b.*?)(?:$|, or | or fill|: )", message
    )
    assert code, message
    scope = {"np": np, **names}
    for package, short in (("polars", "pl"), ("pyarrow", "pa")):
        if f"{short}." in code[1]:
            scope[short] = pytest.importorskip(package)
    return eval(code[1], scope)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_without_nulls_keeps_every_bit(kind):
    array = column(kind, BIG)
    same(th.unique(array), np.array(BIG))
    assert th.HashMap.from_items(array, array).keys().tolist() == BIG
    table = th.HashSet(4, "int64", ())
    same(table.insert(array)[0], np.arange(3, dtype=np.int32))
    assert table.contains(array).all()


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
)
def test_a_column_of_every_dtype_keeps_its_dtype(kind, dtype):
    same(th.unique(column(kind, [3, 1, 3], dtype)), np.array([3, 1], dtype))
    same(th.unique(column(kind, [], dtype)), np.array([], dtype))


def test_columns_of_bools_are_bools():
    for array in (
        _pandas().Series([True, False, True], dtype="boolean"),
        _polars().Series([True, False, True]),
        _arrow().array([True, False, True]),
    ):
        same(th.unique(array), np.array([True, False]))


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_null_is_a_value_error_with_a_way_out_that_works(kind):
    array = column(kind, NULL)
    with pytest.raises(
        ValueError, match="array: expected no nulls, got 1, the first in row 2"
    ) as e:
        th.unique(array)
    assert th.unique(way_out(str(e.value), array=array)).tolist() == NULL[:2]
    assert "fill" in str(e.value)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_null_in_a_frame_names_the_column(kind):
    array = frame(kind, {"a": BIG, "b": NULL}, ["int64", "int64"])
    with pytest.raises(
        ValueError, match=r"array\['b'\]: expected no nulls, got 1, the first in row 2"
    ) as e:
        th.unique(array)
    rest = way_out(str(e.value), array=array)
    assert th.unique(rest).tolist() == [[2**53, 2**53], [2**53 + 1, 2**53 + 1]]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["pandas nullable", "pandas arrow", "polars", "arrow"])
def test_every_function_reads_columns_exactly_and_refuses_nulls(kind, name):
    argument, array, run = CALLS[name]
    dtype = array.dtype.name

    def made(rows):
        if array.ndim == 1:
            return column(kind, rows.tolist(), dtype)
        columns = {f"c{i}": rows[:, i].tolist() for i in range(array.shape[1])}
        return frame(kind, columns, [dtype] * array.shape[1])

    assert plain(run(made(array))) == plain(run(array))
    holed = array.astype(object)
    holed[2] = None
    with pytest.raises(ValueError, match=rf"^{argument}[:[].*expected no nulls, got 1, .*row 2"):
        run(made(holed))


def test_a_refused_batch_changes_nothing():
    table = th.HashMap(4, "int64", (), "int64", ())
    table.insert([1], [10])
    for kind in ("pandas nullable", "polars", "arrow"):
        for call in (table.insert, table.insert_or_assign, table.accumulate):
            with pytest.raises(ValueError, match="^keys: expected no nulls"):
                call(column(kind, NULL), [1, 2, 3])
            with pytest.raises(ValueError, match="^values: expected no nulls"):
                call([1, 2, 3], column(kind, NULL))
    assert [part.tolist() for part in table.items()] == [[1], [10]]
    table.validate()


def test_nan_is_a_float_and_no_null():
    numbers = [np.nan, 1.0, np.nan]
    for array in (
        _pandas().Series(numbers),
        _polars().Series(numbers),
        _arrow().array(numbers),
    ):
        same(th.unique(array), np.array([np.nan, 1.0]))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("other", ["float64", "uint64", "float32"])
def test_columns_that_no_dtype_holds_are_refused(kind, other):
    array = frame(kind, {"a": BIG, "b": [1, 1, 1]}, ["int64", other])
    message = rf"array: expected columns .* got int64 in array\['a'\] and {other} in array\['b'\]"
    with pytest.raises(TypeError, match=rf"{message}; cast them to one dtype first"):
        th.unique(array)
    with pytest.raises(TypeError, match="^keys: expected columns"):
        th.HashSet(4, "float64", (2,)).insert(array)
    with pytest.raises(TypeError, match="^points: expected columns"):
        th.coords.voxelize(array, 1.0)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    "dtypes, joined",
    [
        (("int64", "int64"), "int64"),
        (("int64", "int8"), "int64"),
        (("int32", "uint32"), "int64"),
        (("int32", "float64"), "float64"),
        (("int16", "float32"), "float32"),
        (("int32", "float32"), "float64"),
        (("uint64", "uint8"), "uint64"),
    ],
)
def test_columns_that_one_dtype_holds_are_joined(kind, dtypes, joined):
    array = frame(kind, {"a": [5, 6, 5], "b": [7, 8, 7]}, dtypes)
    same(th.unique(array), np.array([[5, 7], [6, 8]], joined))
    assert th.HashSet(4, joined, (2,)).insert(array)[1].tolist() == [True, True, False]


@pytest.mark.parametrize("kind", [*COLUMNS, *(f"frame of {name}" for name in FRAMES)])
def test_another_dtype_is_refused_with_a_cast_that_works(kind):
    if kind.startswith("frame of "):
        keys = frame(kind.removeprefix("frame of "), {"a": [1, 2]}, ["int32"])
    else:
        keys = column(kind, [1, 2], "int32")
    table = th.HashSet(4, "int64", ())
    with pytest.raises(TypeError, match="keys: expected int64, got int32; cast with") as error:
        table.insert(keys)
    assert table.size() == 0
    assert table.insert(way_out(str(error.value), keys=keys))[1].all()


TEXTS = {
    "numpy": lambda: np.array(["a", "žluť", "a"]),
    "numpy bytes": lambda: np.array([b"a", b"bc", b"a"])[::1],
    "pandas": lambda: _pandas().Series(["a", "žluť", "a"]),
    "pandas string": lambda: _pandas().Series(["a", "žluť", "a"], dtype="string"),
    "pandas object": lambda: _pandas().Series(["a", "žluť", "a"], dtype="category"),
    "pandas index": lambda: _pandas().Index(["a", "žluť", "a"]),
    "polars": lambda: _polars().Series(["a", "žluť", "a"]),
    "polars categories": lambda: _polars().Series(["a", "žluť", "a"], dtype=_polars().Categorical),
    "arrow": lambda: _arrow().array(["a", "žluť", "a"]),
    "arrow large": lambda: _arrow().array(["a", "žluť", "a"], type="large_string"),
    "arrow chunks": lambda: _arrow().chunked_array([["a"], ["žluť", "a"]]),
    "arrow dictionary": lambda: _arrow().array(["a", "žluť", "a"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_strings_are_refused_with_a_way_in_that_works(kind):
    keys = TEXTS[kind]()
    with pytest.raises(
        TypeError, match="keys: expected.*StringIndex number strings; for rows of"
    ) as error:
        th.HashSet(4, "int64", ()).insert(keys)
    with pytest.raises(TypeError, match="array: expected.*StringIndex number strings; for rows of"):
        th.unique(keys)
    rows = way_out(str(error.value), keys=keys)
    assert th.unique(rows, return_inverse=True)[1].tolist() == [0, 1, 0]
    table = th.HashSet(4, rows.dtype, rows.shape[1:])
    assert table.insert(rows)[1].tolist() == [True, True, False]


DAYS = ["2024-02-29", "1969-07-20", "2024-02-29"]


def _stamps():
    return np.array(DAYS, "datetime64[us]")


DATES = {
    "numpy": _stamps,
    "numpy durations": lambda: _stamps() - _stamps()[1],
    "pandas": lambda: _pandas().Series(_stamps()),
    "pandas zone": lambda: _pandas().Series(_stamps()).dt.tz_localize("UTC"),
    "pandas durations": lambda: _pandas().Series(_stamps() - _stamps()[1]),
    "pandas index": lambda: _pandas().DatetimeIndex(_stamps()),
    "pandas arrow": lambda: _pandas_arrow().Series(_stamps()).astype("timestamp[us][pyarrow]"),
    "polars": lambda: _polars().Series(_stamps()),
    "polars days": lambda: _polars().Series(_stamps()).dt.date(),
    "polars durations": lambda: _polars().Series(_stamps() - _stamps()[1]),
    "arrow": lambda: _arrow().array(_stamps()),
    "arrow chunks": lambda: _arrow().chunked_array([_arrow().array(_stamps())]),
    "arrow days": lambda: _arrow().array(_stamps()).cast(_arrow().date32()),
    "arrow durations": lambda: _arrow().array(_stamps() - _stamps()[1]),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_refused_with_a_way_in_that_works(kind):
    keys = DATES[kind]()
    with pytest.raises(TypeError, match="keys: expected.*; pass ") as error:
        th.HashSet(4, "int64", ()).insert(keys)
    rows, inverse = th.unique(way_out(str(error.value), keys=keys), return_inverse=True)
    assert inverse.tolist() == [0, 1, 0]
    assert rows.dtype in (np.int64, np.int32)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_of_strings_is_named(kind):
    library = {"pandas nullable": "pandas", "arrow batch": "arrow"}.get(kind, kind)
    names = TEXTS["pandas string" if library.startswith("pandas") else library]()
    array = FRAMES[kind]({"a": column(kind, BIG), "name": names})
    with pytest.raises(
        TypeError, match=r"keys\['name'\]: expected bool, integers or floats, got"
    ) as e:
        th.HashSet(4, "int64", (2,)).insert(array)
    assert len(th.unique(way_out(str(e.value), keys=array))) == 2


def test_object_columns_go_in_as_lists():
    big = [2**53, 2**53 + 1, 2**53]
    for keys in (np.array(big, object), _pandas().Series(big, dtype=object)):
        with pytest.raises(TypeError, match=r"keys: expected.*; pass keys\.tolist\(\): ") as error:
            th.HashSet(4, "int64", ()).insert(keys)
        assert th.unique(way_out(str(error.value), keys=keys)).tolist() == big[:2]
    for missing in (None, _pandas().NA, _pandas().NaT):
        with pytest.raises(
            TypeError, match="array: row 1: expected a number, got .*; drop such rows"
        ):
            th.unique(np.array([1, missing], object).tolist())


def test_categories_and_sparse_columns_of_numbers_are_their_numbers():
    pandas = _pandas()
    same(th.unique(pandas.Series(BIG, dtype="category")), np.array(BIG))
    with pytest.raises(ValueError, match="array: expected no nulls, got 1"):
        th.unique(pandas.Series(NULL, dtype="Int64").astype("category"))
    same(th.unique(pandas.Series(BIG, dtype="Sparse[int64]")), np.array(BIG))
    encoded = _arrow().array([*BIG, BIG[0]]).dictionary_encode()
    same(th.unique(encoded), np.array(BIG))
    same(th.unique(_arrow().chunked_array([encoded, encoded])), np.array(BIG))
    with pytest.raises(ValueError, match="array: expected no nulls, got 1"):
        th.unique(_arrow().array(NULL).dictionary_encode())


def test_arrays_of_fixed_width_are_rows():
    rows = [[1, 2, 3], [4, 5, 6], [1, 2, 3]]
    polars, arrow = _polars(), _arrow()
    fixed = arrow.array(rows, type=arrow.list_(arrow.int64(), 3))
    nested = arrow.array([rows] * 2, type=arrow.list_(fixed.type, 3))
    for array in (
        polars.Series(rows, dtype=polars.Array(polars.Int64, 3)),
        fixed,
        fixed[0:3],
        arrow.chunked_array([fixed[:1], fixed[1:]]),
    ):
        same(th.unique(array), np.array(rows[:2]))
    same(th.unique(fixed[1:]), np.array(rows[1:]))
    same(th.unique(nested), np.array([rows]))
    same(
        th.unique(polars.Series([rows] * 2, dtype=polars.Array(polars.Int64, (3, 3)))),
        np.array([rows]),
    )
    rows[1][1] = None
    for array in (
        polars.Series(rows, dtype=polars.Array(polars.Int64, 3)),
        arrow.array(rows, type=fixed.type),
    ):
        with pytest.raises(ValueError, match="array: expected no nulls, got 1"):
            th.unique(array)


def test_data_without_numbers_yet_is_refused_by_name():
    polars, arrow = _polars(), _arrow()
    with pytest.raises(TypeError, match=r"array: .*LazyFrame; pass array\.collect\(\)"):
        th.unique(polars.LazyFrame({"a": [1]}))
    for array in (
        arrow.array([[1], [2, 3]]),
        polars.Series([[1], [2, 3]]),
        polars.Series([{"a": 1}]),
        arrow.array([{"a": 1}]),
        _pandas().Series(_pandas().interval_range(0, 3)),
        arrow.array([1, 2]).cast(arrow.decimal128(30, 2)),
        polars.Series(["1.5"]).cast(polars.Decimal(10, 2)),
    ):
        with pytest.raises(TypeError, match="array: expected bool, integers or floats, got"):
            th.unique(array)
    with pytest.raises(ValueError, match="array: expected no nulls, got 2"):
        th.unique(polars.Series([None, None]))
    for empty in (_pandas().DataFrame(), polars.DataFrame()):
        with pytest.raises(ValueError, match="array: expected columns, got a frame without any"):
            th.unique(empty)


def test_frames_of_other_libraries_are_not_read_as_floats():
    class Foreign:
        """Like an unknown library: its integers become floats on the way to NumPy."""

        def __init__(self, **attributes):
            vars(self).update(attributes)

        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, np.nan])

    with pytest.raises(TypeError, match="array: .*Foreign of Int64 that NumPy reads as float64"):
        th.unique(Foreign(dtype="Int64"))
    with pytest.raises(TypeError, match="array: .*Foreign of int64 that NumPy reads as float64"):
        th.unique(Foreign(dtypes=["float64", "int64"]))
    assert len(th.unique(Foreign(dtype="float64"))) == 2


def test_data_that_only_arrow_can_read_is_refused_with_that_reason():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return _arrow().table({"a": [1, 2, 1]}).__arrow_c_stream__(requested_schema)

    keys = Stream()
    with pytest.raises(TypeError, match=r"keys: expected an array.*; pass pyarrow\.table\(keys\)"):
        th.HashSet(4, "int64", ()).insert(keys)
    assert th.unique(_arrow().table(keys)).tolist() == [[1], [2]]


def test_no_library_is_imported_for_arrays_of_another(run_program):
    pytest.importorskip("polars")
    run_program(
        """
        import sys
        import polars, tensorhash
        tensorhash.unique(polars.Series([1, 2, 1]))
        tensorhash.unique(polars.DataFrame({"a": [1, 2], "b": [3, 4]}))
        assert not {"pandas", "pyarrow", "torch", "jax"} & sys.modules.keys()
        """
    )


def test_a_distributed_table_reads_columns_exactly_and_refuses_nulls(run_program, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("polars")
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    run_program(
        f"""
        import polars as pl, torch.distributed as dist
        from tensorhash.distributed import DistributedHashMap

        dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=0, world_size=1)
        table = DistributedHashMap(None, 0, "int64", (), "int64", ())
        big = pl.Series([2**53, 2**53 + 1])
        holed = pl.Series([1, None])
        assert table.insert(big, big)[1].all()
        assert table.get(big).tolist() == big.to_list()
        calls = {{
            "keys": [
                lambda: table.insert(holed, big),
                lambda: table.find(holed),
                lambda: table.contains(holed),
                lambda: table.erase(holed),
                lambda: table.get(holed),
                lambda: table.activate(holed),
                lambda: table.owner(holed),
            ],
            "values": [lambda: table.insert(big, holed), lambda: table.accumulate(big, holed)],
        }}
        for argument, several in calls.items():
            for call in several:
                try:
                    call()
                except ValueError as error:
                    assert str(error).startswith(f"{{argument}}: expected no nulls, got 1"), error
                else:
                    raise SystemExit(f"{{argument}}: nothing was raised")
        assert sorted(table.keys().tolist()) == big.to_list()
        del table, calls, several, call
        dist.destroy_process_group()
        """
    )


@pytest.mark.parametrize("kind", ["polars", "arrow", "arrow chunks"])
def test_a_null_inside_a_row_names_the_row_and_the_advice_drops_it(kind):
    rows = [[1, 2], [3, None], [5, 6]]
    if kind == "polars":
        keys = _polars().Series(rows, dtype=_polars().Array(_polars().Int64, 2))
    else:
        pa = _arrow()
        keys = pa.array(rows, pa.list_(pa.int64(), 2))
        keys = pa.chunked_array([keys[:1], keys[1:]]) if "chunks" in kind else keys
    with pytest.raises(
        ValueError, match="array: expected no nulls, got 1 inside rows, the first in row 1; drop"
    ) as error:
        th.unique(keys)
    way = str(error.value).rpartition(" with ")[2]
    assert th.unique(eval(way, {"array": keys})).tolist() == [[1, 2], [5, 6]]
