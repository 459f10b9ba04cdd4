"""Arguments that the table's dtype cannot hold are refused; nothing is truncated or wrapped."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tensorhash.tensorflow as thtf

Invalid = tf.errors.InvalidArgumentError
i64, u64, f64 = np.int64, np.uint64, np.float64

# The table's dtype, the argument, and how the message describes it.
REFUSED = {
    "float array": (tf.int64, np.array([1.5]), "float64; cast it with tf.cast"),
    "integral float array": (tf.int64, np.array([1.0]), "float64"),
    "float list": (tf.int64, [1.5], "float, 1.5"),
    "nested float": (tf.int32, [[1, 2.5]], "float, 2.5"),
    "NumPy floats in a list": (tf.int64, [f64(1.5)], "float64"),
    "tensors in a list": (tf.int64, [tf.constant(1.5)], "float32"),
    "arrays in a list": (tf.int64, [np.array([1.5])], "float64"),
    "float objects": (tf.int64, np.array([1.5], object), "float, 1.5"),
    "wide array": (tf.int32, np.array([2**32 + 1]), r"4294967297 \(int64\)"),
    "wide negative array": (tf.int32, np.array([-(2**32), 5]), r"-4294967296 \(int64\)"),
    "wide list": (tf.int32, [2**32 + 1], r"4294967297 \(int\)"),
    "very wide list": (tf.int64, [2**70], str(2**70)),
    "wide NumPy number": (tf.int32, i64(2**32 + 1), "4294967297"),
    "wide NumPy numbers": (tf.int32, [i64(2**32 + 1)], "4294967297"),
    "byte array": (tf.uint8, np.array([257]), "257"),
    "byte list": (tf.uint8, [1, 257], "257"),
    "byte range": (tf.uint8, range(300), "299"),
    "negative": (tf.uint64, np.array([-1]), "-1"),
    "negative list": (tf.uint8, [-1], "-1"),
    "uint64 max": (tf.int64, np.array([2**64 - 1], u64), "18446744073709551615"),
    "bools for numbers": (tf.int64, np.array([True]), "bool"),
    "bool list for numbers": (tf.int64, [True], "bool, True"),
    "bools for floats": (tf.float32, [True], "bool, True"),
    "numbers for bools": (tf.bool, np.array([1]), "int64"),
    "number list for bools": (tf.bool, [1], "int, 1"),
    "text for numbers": (tf.int64, ["1"], "str, '1'"),
    "text array for floats": (tf.float32, np.array(["1"]), "<U1"),
    "complex": (tf.float32, [1j], "complex"),
    "complex array": (tf.float64, np.array([1j]), "complex128"),
    "dates": (tf.int64, np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "none": (tf.int64, None, "None"),
}
TEXT_REFUSED = {
    "numbers for text": (tf.string, [1], "int, 1"),
    "array for text": (tf.string, np.array([1]), "int64"),
}

# The table's dtype, the argument, and what the table reads.
ACCEPTED = {
    "narrow enough": (tf.int32, np.array([-(2**31), 2**31 - 1]), [-(2**31), 2**31 - 1]),
    "uint64 in int64": (tf.int64, np.array([5], u64), [5]),
    "int64 in uint64": (tf.uint64, np.array([5]), [5]),
    "large in uint64": (tf.uint64, [2**64 - 1], [2**64 - 1]),
    "bytes": (tf.uint8, [0, 255], [0, 255]),
    "NumPy numbers": (tf.int32, [i64(7), np.uint8(8)], [7, 8]),
    "range": (tf.int64, range(3), [0, 1, 2]),
    "integer objects": (tf.int64, np.array([1, 2], object), [1, 2]),
    "integers for floats": (tf.float32, [1, 2], [1, 2]),
    "integer array for floats": (tf.float32, np.array([1, 2]), [1, 2]),
    "mixed list for floats": (tf.float32, [1, 2.5], [1, 2.5]),
    "float64 for float32": (tf.float32, np.array([0.5]), [0.5]),
    "rounded list for float32": (tf.float32, [0.1], [float(np.float32(0.1))]),
    "list for float64": (tf.float64, [0.1], [0.1]),
    "NumPy floats for float32": (tf.float32, [f64(0.5)], [0.5]),
    "bools": (tf.bool, [True], [True]),
    "bool array": (tf.bool, np.array([True, False]), [True, False]),
    "a tensor in a list": (tf.int64, [tf.constant(4, tf.int64), 5], [4, 5]),
    "nothing": (tf.int64, [], []),
}


def calls(dtype: tf.DType, value: object) -> dict:
    """Every call that takes a batch, by the argument that the message must name."""
    as_key = thtf.HashTable(dtype, tf.int32, 0)
    calls = {
        "keys of lookup": lambda: as_key.lookup(value),
        "keys of insert": lambda: as_key.insert(value, [1]),
        "keys of accumulate": lambda: as_key.accumulate(value, [1]),
        "keys of remove": lambda: as_key.remove(value),
    }
    if dtype == tf.string:
        return calls
    as_value = thtf.HashTable(tf.int64, dtype, False if dtype == tf.bool else 0)
    calls |= {
        "values of insert": lambda: as_value.insert([1], value),
        "values of accumulate": lambda: as_value.accumulate([1], value),
    }
    if value is not None:
        calls["dynamic_default_values"] = lambda: as_value.lookup([1], value)
    return calls


@pytest.mark.parametrize("name", [*REFUSED, *TEXT_REFUSED])
def test_arguments_that_do_not_fit_are_refused_eagerly_and_when_traced(name):
    dtype, value, came = (REFUSED | TEXT_REFUSED)[name]
    for place, call in calls(dtype, value).items():
        match = rf"{place.split()[0]}: expected {dtype.name}.*, got .*{came}"
        with pytest.raises(Invalid, match=match):
            call()
        with pytest.raises(Invalid, match=match):
            tf.function(call).get_concrete_function()


@pytest.mark.parametrize("name", REFUSED)
def test_defaults_that_do_not_fit_are_refused(name):
    dtype, value, came = REFUSED[name]
    match = rf"default_value: expected {dtype.name}.*, got .*{came}"
    with pytest.raises(Invalid, match=match):
        thtf.HashTable(tf.int64, dtype, value)
    items = (tf.constant([1]), tf.zeros([1], dtype))
    with pytest.raises(Invalid, match=match):
        thtf.StaticHashTable(items, value)
    with pytest.raises(Invalid, match=match):
        thtf.StaticHashTable(tf.lookup.KeyValueTensorInitializer(*items), value)


def test_tensors_of_another_dtype_as_a_static_tables_default(tmp_path):
    with pytest.raises(Invalid, match="default_value: expected int32, got float32"):
        thtf.StaticHashTable({1: 2}, tf.constant(-1.0))
    words = tmp_path / "words.txt"
    words.write_text("zero\none\n")
    index = tf.lookup.TextFileIndex
    initializer = tf.lookup.TextFileInitializer(
        str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    for default in (tf.constant(-1.0), np.float32(-1.5), -1.5):
        with pytest.raises(Invalid, match="default_value: expected int64, got float"):
            thtf.StaticHashTable(initializer, default)
    static = thtf.StaticHashTable({1: 2}, -1)
    with pytest.raises(Invalid, match="keys: expected int32.*, got 4294967297"):
        static.lookup(np.array([2**32 + 1]))
    with pytest.raises(Invalid, match="dynamic_default_values: expected int32, got float64"):
        static.lookup([1], dynamic_default_values=np.array([1.5]))


@pytest.mark.parametrize("name", ACCEPTED)
def test_arguments_that_fit_are_accepted_eagerly_and_when_traced(name):
    dtype, value, want = ACCEPTED[name]
    numbers = list(range(len(want)))
    for wrap in (lambda function: function, tf.function):
        keys = thtf.HashTable(dtype, tf.int32, 0)
        values = thtf.HashTable(tf.int64, dtype, False if dtype == tf.bool else 0)

        @wrap
        def step(keys=keys, values=values):
            keys.insert(value, numbers)
            values.insert(numbers, value)
            results = keys.export()[0], keys.lookup(value), values.lookup(numbers)
            keys.remove(value)
            return *results, values.lookup([-1 for _ in numbers], value), keys.size()

        kept, found, stored, default, size = step()
        assert sorted(kept.numpy().tolist()) == sorted(want)
        assert found.numpy().tolist() == numbers
        assert stored.numpy().tolist() == default.numpy().tolist() == want
        assert int(size) == 0


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda d: d.name)
def test_small_floats_are_written_as_any_number(dtype):
    table = thtf.HashTable(tf.int64, dtype, 0)
    for value in ([1.5, 2], np.array([1.5, 2]), np.float32([1.5, 2])):
        table.insert([1, 2], value)
        assert table.lookup([1, 2, 3]).numpy().astype(float).tolist() == [1.5, 2, 0]
    table.insert([1], np.array([7]))
    assert float(table[1]) == 7


def test_arrays_of_other_libraries_are_checked_like_numpys():
    class Series:
        """Like pandas' and torch's: an object that NumPy can read."""

        def __init__(self, data):
            self.data = np.asarray(data)

        def __len__(self):
            return len(self.data)

        def __getitem__(self, at):
            return self.data[at]

        def __array__(self, dtype=None, copy=None):
            return self.data if dtype is None else self.data.astype(dtype)

    table = thtf.HashTable(tf.int32, tf.int32, -1)
    table.insert(Series([1, 2]), Series([10, 20]))
    assert table.lookup(Series([2, 1])).numpy().tolist() == [20, 10]
    with pytest.raises(Invalid, match="keys: expected int32, got float64"):
        table.lookup(Series([1.5]))
    with pytest.raises(Invalid, match="keys: expected int32.*, got 4294967297"):
        table.lookup(Series([2**32 + 1]))


def columns() -> dict:
    """Columns with and without a null, which NumPy would read as NaN or without its mask."""
    holed, whole = [1, None], [1, 2]
    made = {
        "masked": (
            np.ma.masked_array([1, 2], mask=[False, True]),
            np.ma.masked_array(whole),
        )
    }
    try:
        import pandas
    except ImportError:
        return made
    return made | {"pandas": [pandas.Series(rows, dtype="Int64") for rows in (holed, whole)]}


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32])
def test_nulls_are_refused_and_columns_without_them_go_in(dtype: tf.DType):
    for name, (holed, whole) in columns().items():
        for place, call in calls(dtype, holed).items():
            nulls = "masked entries" if name == "masked" else "nulls"
            with pytest.raises(Invalid, match=f"{place.split()[0]}: expected no {nulls}, got 1"):
                call()
        table = thtf.HashTable(tf.int64, dtype, 0)
        table.insert(whole, whole)
        assert table.lookup(whole).numpy().tolist() == [1, 2]
