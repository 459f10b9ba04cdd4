"""StringIndex against a dict, from every kind of array; files; strings and dates as keys."""

import copy
import datetime
import doctest
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from oracle import refused, same

import tensorhash as th
from tensorhash.data import StringIndex, factorize, group_by, index_of, isin, join

WORDS = ["", "a", "b", "ab", "a\0b", "zwölf", "東京", "\U0001f600", "x" * 7, "x" * 8, "x" * 9]
WORDS += ["x" * 15, "x" * 16, "x" * 17, "x" * 300, "y" + "x" * 299]


def numbered(strings):
    """(numbers, dict) by a loop."""
    seen = {}
    return np.array([seen.setdefault(one, len(seen)) for one in strings], np.int64), seen


def some_strings(count, distinct, seed):
    rng = np.random.default_rng(seed)
    pool = [f"{rng.integers(0, 10**9)}-{'x' * int(rng.integers(0, 40))}" for _ in range(distinct)]
    return [pool[i] for i in rng.integers(0, distinct, count)]


def forms(strings):
    """The same strings in every form that is accepted without nulls."""
    yield "list", strings
    yield "objects", np.array(strings, object)
    if not any("\0" in one for one in strings):
        yield "U", np.array(strings)
        yield "big-endian U", np.array(strings).astype(np.array(strings).dtype.newbyteorder(">"))
        yield "S", np.array([one.encode() for one in strings])
        yield "strided U", np.repeat(np.array(strings), 2)[::2]
        yield "StringDType", np.array(strings, np.dtypes.StringDType())
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    yield "pandas", pandas.Series(strings)
    yield "pandas objects", pandas.Series(strings, dtype=object)
    yield "pandas index", pandas.Index(strings)
    yield "pandas categorical", pandas.Series(strings, dtype="category")
    yield "polars", polars.Series(strings)
    yield "polars categorical", polars.Series(strings, dtype=polars.Categorical)
    array = arrow.array(strings, arrow.string())
    for name in ("string", "large_string", "string_view", "binary", "binary_view"):
        yield f"arrow {name}", array.cast(getattr(arrow, name)())
    yield "arrow dictionary", array.dictionary_encode()
    yield "arrow slice", arrow.concat_arrays([array[:3], array])[3:]
    yield "arrow chunks", arrow.chunked_array([array[:2], array[2:2], array[2:]])
    yield "exporter", Exporter(array)
    yield "stream exporter", StreamExporter(arrow.table({"s": array}))


class Exporter:
    """An object that only exports Arrow data, as those of a library that we do not know."""

    def __init__(self, array):
        self._array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self._array.__arrow_c_array__(requested_schema)


class StreamExporter:
    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("strings", [WORDS * 2, [w for w in WORDS if "\0" not in w] * 3])
def test_every_form_gives_the_same_numbers(strings):
    expected, seen = numbered(strings)
    for name, form in forms(strings):
        index = StringIndex()
        same(np.asarray(index.insert(form)), expected)
        same(np.asarray(index.find(form)), expected)
        assert index.decode(np.arange(len(index))).tolist() == list(seen), name


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_batches_agree_with_a_dict_on_any_number_of_threads(threads):
    th.set_num_threads(threads)
    strings = some_strings(60_000, 9_000, 1)
    expected, seen = numbered(strings)
    index = StringIndex()
    for begin in range(0, 60_000, 25_000):
        part = np.array(strings[begin : begin + 25_000])
        same(np.asarray(index.insert(part)), expected[begin : begin + 25_000])
    assert len(index) == len(seen)
    assert index.decode(expected[:500]).tolist() == strings[:500]
    found = np.asarray(index.find(np.array([*strings[:100], "not there"])))
    same(found, np.append(expected[:100], -1))
    assert strings[0] in index
    assert "not there" not in index


def test_bytes_that_are_no_text():
    index = StringIndex()
    index.insert([b"\xff\x00", b"\xff"])
    assert index.decode([1, 0], as_bytes=True).tolist() == [b"\xff", b"\xff\x00"]
    refused(lambda: index.decode([0]), "not UTF-8", "as_bytes=True")


def test_files_pickles_and_copies_keep_the_numbers(tmp_path):
    index = StringIndex()
    index.insert(WORDS)
    path = index.save(tmp_path / "words")
    assert path.endswith("words.thash")
    twins = [StringIndex.load(path), pickle.loads(pickle.dumps(index)), copy.copy(index)]
    for twin in [*twins, copy.deepcopy(index)]:
        same(np.asarray(twin.find(WORDS)), np.arange(len(WORDS)))
        assert np.asarray(twin.insert(["new"])).tolist() == [len(WORDS)]
    assert len(index) == len(WORDS)
    empty = StringIndex()
    assert len(StringIndex.load(empty.save(tmp_path / "empty"))) == 0


def test_damaged_files_are_refused(tmp_path):
    index = StringIndex()
    index.insert(WORDS)
    path = index.save(tmp_path / "words")
    whole = Path(path).read_bytes()
    rng = np.random.default_rng(0)
    for at in [*range(40), *rng.integers(0, len(whole), 60).tolist()]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(0, 8))
        Path(path).write_bytes(damaged)
        refused(lambda: StringIndex.load(path), "words.thash")
    for size in (0, 5, 31, 39, len(whole) - 1):
        Path(path).write_bytes(whole[:size])
        refused(lambda: StringIndex.load(path), "words.thash")
    table = th.HashSet(0, "int64", ())
    table.save(path)
    refused(lambda: StringIndex.load(path), "THSTR")


def write_head(path, strings, size, body):
    """A file with a right checksum, whatever it says."""
    head = b"THSTR\r\n\x1a" + np.array([1, 0], "<u4").tobytes()
    head += np.array([strings, size], "<u8").tobytes()
    data = np.frombuffer(head + body, np.uint8)
    Path(path).write_bytes(data.tobytes() + checksum(data))


def checksum(data):
    """The checksum of src/io/checksum.hpp."""
    mask = 2**64 - 1

    def mix(x):
        x = (x + 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    lanes = [1, 2, 3, 4]
    padded = data.tobytes() + b"\0" * (32 - len(data) % 32)
    for word, value in enumerate(np.frombuffer(padded, "<u8").tolist()):
        lanes[word % 4] = mix(lanes[word % 4] ^ value)
    total = len(data)
    for lane in lanes:
        total = mix(total ^ lane)
    return np.array([total], "<u8").tobytes()


def test_files_that_lie_are_refused_before_memory_is_allocated(tmp_path):
    path = str(tmp_path / "lie.thash")
    sizes = np.array([1, 1], "<u8").tobytes()
    write_head(path, 2, 2, sizes + b"ab")
    assert StringIndex.load(path).decode([0, 1]).tolist() == ["a", "b"]
    for strings, size, body, part in (
        (2**31 + 5, 2, sizes + b"ab", "do not fit"),
        (2**62, 2, sizes + b"ab", "do not fit"),
        (2, 2**63, sizes + b"ab", "do not fit"),
        (2, 2, sizes + b"aa", "twice"),
        (2, 2, np.array([1, 0], "<u8").tobytes() + b"ab", "belong to no string"),
        (2, 2, np.array([9, 1], "<u8").tobytes() + b"ab", "ends after"),
        (2, 2, np.array([2**64 - 1, 1], "<u8").tobytes() + b"ab", "ends after"),
    ):
        write_head(path, strings, size, body)
        refused(lambda: StringIndex.load(path), part)
    write_head(path, 2, 2, sizes + b"ab")
    refused(lambda: StringIndex.load(path, max_bytes=60), "max_bytes")


def test_nulls_and_other_dtypes_are_refused():
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    index = StringIndex()
    for column in (
        arrow.array(["a", None, "b"]),
        polars.Series(["a", None, "b"]),
        arrow.array(["a", None, "b"]).dictionary_encode(),
        arrow.chunked_array([["a"], [None, "b"]]),
    ):
        refused(lambda column=column: index.insert(column), "1", "row 1")
    refused(lambda: index.insert(["a", None]), "str or bytes", "NoneType", "row 1")
    refused(lambda: index.insert(np.array([1, 2])), "strings", "an array of int64 of shape (2,)")
    refused(lambda: index.insert([None, "a"]), "strings", "a list with NoneType in row 0")
    refused(lambda: index.insert("word"), "strings", "one str; pass a list")
    refused(lambda: index.insert({"a"}), "strings", "set; pass list(strings)")
    refused(lambda: index.insert(np.array(["a", "\ud800"])), "strings: row 1 is no valid text")
    refused(lambda: index.insert(5), "strings", "int")
    refused(lambda: index.insert(["a", "\ud800"]), "surrogate", "row 1")
    for dtype in ("U1", "S1", object):
        hidden = np.ma.masked_array(np.array(["a", "b"], dtype), mask=[False, True])
        refused(lambda hidden=hidden: index.insert(hidden), "strings", "masked", "1")
        refused(lambda hidden=hidden: factorize(hidden), "masked", "1")
    refused(lambda: index.decode([0]), "0")
    refused(lambda: index.decode([0.5]), "integers")
    assert len(index) == 0


def test_object_arrays_are_read_in_place_with_any_stride():
    strings = np.array(["a", "é", b"a", "b" * 50, "", "a\0"], object)
    index = StringIndex()
    assert index.insert(strings[::-1]).tolist() == [0, 1, 2, 3, 4, 3]
    assert index.insert(strings[1::2]).tolist() == [4, 2, 0]
    assert index.insert(np.ma.masked_array(strings, mask=False)).tolist() == [3, 4, 3, 2, 1, 0]
    refused(lambda: index.insert(np.empty(3, object)), "strings")
    refused(lambda: index.insert(strings.reshape(2, 3)), "strings")
    assert len(index) == 5


class Word(str):
    """A str with another layout in memory."""


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_objects_of_every_layout_are_read_on_any_number_of_threads(threads):
    th.set_num_threads(threads)
    pool = [
        *WORDS,
        "é",
        "\u0436" * 40,
        "\U0001f600" * 40,
        "é" * 31,
        b"a",
        b"\xff\0",
        Word("ab"),
        Word("é"),
    ]
    pool += [np.str_("ab"), np.bytes_(b"b"), Word("東京")]
    strings = [pool[i] for i in np.random.default_rng(5).integers(0, len(pool), 40_000)]
    plain = [one if isinstance(one, bytes) else one.encode() for one in strings]
    expected, _ = numbered(plain)
    for rows in (strings, tuple(strings), np.array([*strings, None], object)[:-1]):
        index = StringIndex()
        same(index.insert(rows), expected)
        same(index.find(rows), expected)
    for at, wrong in ((39_999, 7), (20_000, None), (0, "a\ud800")):
        index = StringIndex()
        rows = [*strings[:at], wrong, *strings[at + 1 :]]
        refused(lambda index=index, rows=rows: index.insert(rows), "strings", str(at))
        assert len(index) == 0


def test_references_to_objects_are_given_back():
    word = "".join(["a word", " of its own"])
    strings = np.array([word] * 1000, object)
    before = sys.getrefcount(word)
    index = StringIndex()
    index.insert(strings)
    refused(lambda: index.insert([*strings, 5]), "int", "row 1000")
    assert sys.getrefcount(word) == before


def test_an_empty_batch():
    index = StringIndex()
    for form in ([], np.array([], "U3"), np.array([], "S"), np.zeros(0, object)):
        assert np.asarray(index.insert(form)).shape == (0,)


def test_strings_are_keys_of_groups_and_joins():
    shops = ["b", "a", "b", "c"]
    price = np.array([1.0, 2.0, 4.0, 8.0])
    for name, form in forms(shops):
        got = group_by(form).agg(sum=price)
        words = [b"b", b"a", b"c"] if name == "S" or "binary" in name else ["b", "a", "c"]
        assert next(iter(got.values())).tolist() == words, name
        same(got["sum"], np.array([5.0, 2.0, 8.0]))
        rows = join(["a", "x", "b"], form, "left")
        same(np.asarray(rows.left), np.array([0, 1, 2, 2]))
        same(np.asarray(rows.right), np.array([1, -1, 0, 2]))
    got = group_by((np.array(shops), np.array([1, 1, 1, 2]))).agg(rows="count")
    assert got["key_0"].tolist() == ["b", "a", "c"]
    same(got["key_1"], np.array([1, 1, 2]))
    codes, uniques = factorize(np.array(shops))
    same(codes, np.array([0, 1, 0, 2]))
    assert uniques.tolist() == ["b", "a", "c"]
    assert isin(["a", "z"], shops).tolist() == [True, False]
    assert index_of(shops, ["c", "z"]).tolist() == [3, -1]
    refused(lambda: join([1, 2], shops), "left", "strings", "int64")


def test_streams_of_strings():
    a, b = th.GroupBy(sum="v"), th.GroupBy(sum="v")
    a.update(["x", "y"], v=[1, 2])
    a.update(np.array(["y", "z"]), v=[10, 20])
    b.update(["w", "x"], v=[100, 200])
    a.merge(b)
    got = a.result()
    assert got["key"].tolist() == ["x", "y", "z", "w"]
    assert got["sum"].tolist() == [201, 12, 20, 100]


def test_bytes_that_are_no_text_are_keys_and_come_back():
    words = np.array([b"\xff", b"a", b"\xff"])
    for form in (words, words.tolist(), words.astype(object)):
        codes, uniques = factorize(form)
        assert uniques[codes].tolist() == words.tolist()
        assert isin(form, ["a"]).tolist() == [False, True, False]  # "a" is b"a"
    a, b = th.GroupBy(rows="count"), th.GroupBy(rows="count")
    a.update(words)
    b.update(words)
    a.merge(b)
    assert a.result()["key"].tolist() == [b"\xff", b"a"]
    assert a.result()["rows"].tolist() == [4, 2]


def test_dates_are_keys_by_their_integers_and_come_back_as_dates():
    days = np.array(["2024-01-02", "2024-01-01", "2024-01-02"], "datetime64[D]")
    got = group_by(days).agg(rows="count")
    same(got["key"], days[:2])
    spans = np.array([5, 5, 7], "timedelta64[ms]")
    same(group_by(spans).agg(rows="count")["key"], spans[[0, 2]])
    same(group_by(days.astype(">M8[D]")).agg(rows="count")["key"], days[:2])
    same(factorize(spans.astype(">m8[ms]")).uniques, spans[[0, 2]])
    refused(
        lambda: group_by([datetime.date(2024, 1, 2)]), "keys", 'np.array(keys, "datetime64[us]")'
    )
    refused(lambda: group_by([datetime.timedelta(1)]), "keys", 'np.array(keys, "timedelta64[us]")')
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    for column in (polars.Series(days), pandas.Series(days.astype("datetime64[s]"))):
        got = group_by(column).agg(rows="count")
        assert (got["key"] == days[:2]).all()
        assert got["rows"].tolist() == [2, 1]
    frame = polars.DataFrame({"day": days, "shop": ["a", "b", "a"], "n": [1, 2, 3]})
    got = group_by(frame.select("day", "shop")).agg(sum=frame["n"])
    assert list(got) == ["day", "shop", "sum"]
    assert got["sum"].tolist() == [4, 2]
    refused(lambda: group_by(np.array(["NaT"], "datetime64[D]")), "NaT", "row 0")
    refused(lambda: join(days, days.astype("datetime64[s]")), "datetime64")


def test_frames_of_unknown_libraries():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"k": [1, 2, 1], "s": ["a", "b", "a"], "f": [True, False, True]})
    got = group_by(StreamExporter(table)).agg(rows="count")
    assert {name: column.tolist() for name, column in got.items()} == {
        "k": [1, 2],
        "s": ["a", "b"],
        "f": [True, False],
        "rows": [2, 1],
    }
    values = Exporter(arrow.array([1.5, 2.5, 4.0]))
    assert group_by(table["k"]).agg(sum=values)["sum"].tolist() == [5.5, 2.5]
    refused(lambda: group_by(Exporter(arrow.array([[1], [2]]))), "keys", "lists")
    refused(lambda: group_by(Exporter(arrow.array([1, None]))), "nulls", "row 1")


def test_no_library_is_imported(run_program):
    run_program("""
        import sys
        import numpy as np
        import tensorhash as th
        th.StringIndex().insert(np.array(["a"]))
        th.group_by(["a"]).agg(rows="count")
        assert not {"pandas", "polars", "pyarrow"} & set(sys.modules)
    """)


def test_the_examples_in_docstrings_are_true():
    failed, tried = doctest.testmod(th.data._string_index)
    assert failed == 0
    assert tried > 0
