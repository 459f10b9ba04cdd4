"""Every error names the argument, what was expected and what came."""

import re

import numpy as np
import pytest
from oracle import snapshot

import tensorhash
import tensorhash.core as o3c

K = np.arange(3)[:, None]
V = np.zeros((3, 2), dtype=np.float32)


def table():
    made = tensorhash.HashMap(4, "int64", (1,), "float32", (2,))
    made.insert(K, V)
    return made


# The call, the class of the error, then words of its message; "a|b" matches either.
CASES = {
    "key dtype": (lambda t: t.insert(K.astype("f8"), V), TypeError, "keys", "int64", "float64"),
    "key cast": (lambda t: t.find(K.astype("f8")), TypeError, 'keys.astype("int64")'),
    "key width": (lambda t: t.find(np.zeros((3, 2), "i8")), ValueError, "keys", "(N, 1)", "(3, 2)"),
    "key scalar": (lambda t: t.find(5), ValueError, "keys", "rows", "5"),
    "key 0-d": (lambda t: t.find(np.array(5)), ValueError, "keys", "rows|dimension|shape"),
    "key None": (lambda t: t.find(None), TypeError, "keys", "array", "NoneType"),
    "key text": (lambda t: t.find("abc"), TypeError, "keys", "array", "str"),
    "key set": (lambda t: t.find({1, 2}), TypeError, "keys", "array", "set", "list"),
    "key range": (lambda t: t.find([[2**63]]), ValueError, "keys", "row 0", str(2**63), "int64"),
    "key float": (lambda t: t.find([[0.5]]), TypeError, "keys", "int64", "0.5"),
    "key ragged": (lambda t: t.find([[1], [1, 2]]), ValueError, "keys", "ragged|length"),
    "key word": (lambda t: t.find([["a"]]), TypeError, "keys", "number", "a"),
    "value dtype": (
        lambda t: t.insert(K, V.astype("f8")),
        TypeError,
        "values",
        "float32",
        "float64",
    ),
    "value cast": (lambda t: t.insert(K, V.astype("f8")), TypeError, 'values.astype("float32")'),
    "value width": (lambda t: t.insert(K, V[:, :1]), ValueError, "values", "(N, 2)", "(3, 1)"),
    "value rows": (lambda t: t.insert(K, V[:2]), ValueError, "values", "3", "2"),
    "value count": (lambda t: t.insert(K, [V, V]), ValueError, "values", "(N, 2)"),
    "value missing": (lambda t: t.insert(K), (TypeError, ValueError), "values", "1", "0|none"),
    "value range": (
        lambda t: t.insert([[9]], [[1e39, 0]]),
        ValueError,
        "values",
        "row 0",
        "float32",
    ),
    "value word": (lambda t: t.insert([[9]], [["a", "b"]]), TypeError, "values", "number", "a"),
    "value None": (lambda t: t.insert(K, [None]), TypeError, "values", "NoneType|None"),
    "reduce word": (
        lambda t: t.accumulate(K, V, "mean"),
        ValueError,
        "reduce",
        "sum",
        "last",
        "mean",
    ),
    "reduce count": (lambda t: t.accumulate(K, V, ["sum"] * 2), ValueError, "reduce", "1", "2"),
    "reduce number": (lambda t: t.accumulate(K, V, 3), TypeError, "reduce", "int|3"),
    "reduce list": (lambda t: t.accumulate(K, V, [3]), TypeError, "reduce", "int|3"),
    "default shape": (lambda t: t.get(K, V[:2]), ValueError, "default", "2"),
    "default dtype": (
        lambda t: t.get(K, V.astype("f8")),
        TypeError,
        "default",
        "float32",
        "float64",
    ),
    "default word": (lambda t: t.get(K, "abc"), TypeError, "default", "str|abc"),
    "column": (lambda t: t.value_tensor(1), IndexError, "value_buffer_id", "1"),
    "column text": (lambda t: t.value_tensor("a"), TypeError, "value_buffer_id", "int", "str"),
    "negative column": (lambda t: t.value_tensor(-1), IndexError, "value_buffer_id", "-1"),
    "reserve": (lambda t: t.reserve(-1), ValueError, "capacity", "0", "-1"),
    "reserve text": (lambda t: t.reserve("a"), TypeError, "capacity", "int", "str"),
    "to a device": (lambda t: t.to("cuda:0"), RuntimeError, "device", "CUDA"),
    "to nonsense": (lambda t: t.to("moon"), ValueError, "device", "cpu", "moon"),
    "to number": (lambda t: t.to(3), TypeError, "device", "int"),
    "cuda": (lambda t: t.cuda(), RuntimeError, "CUDA"),
    "in": (lambda t: [1, 2] in t, ValueError, "key", "(1,)", "(2,)"),
    "in dtype": (lambda t: np.array([1.0]) in t, TypeError, "key", "int64", "float64"),
    "save": (lambda t: t.save(5), TypeError, "file_name", "path", "int"),
    "load": (lambda t: t.load("/nowhere/x.thash"), FileNotFoundError, "/nowhere/x.thash"),
    "save folder": (lambda t: t.save("/nowhere/x.thash"), FileNotFoundError, "/nowhere/x.thash"),
    "load npz": (lambda t: t.load("/nowhere/x.npz"), FileNotFoundError, "/nowhere/x.npz"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_says_what_was_expected_and_what_came_and_changes_nothing(case):
    call, kind, *words = CASES[case]
    made = table()
    before = snapshot(made)
    with pytest.raises(kind) as error:
        call(made)
    message = str(error.value)
    for word in words:
        assert any(choice in message for choice in word.split("|")), f"no {word!r} in: {message}"
    assert len(message) > 15
    assert not re.search(r"nanobind|std::|\.cpp|_core\.", message), message
    assert snapshot(made) == before
    made.validate()


CONSTRUCTORS = {
    "capacity": (lambda: tensorhash.HashSet(-3, "int64", ()), ValueError, "init_capacity", "-3"),
    "capacity text": (
        lambda: tensorhash.HashSet("a", "int64", ()),
        TypeError,
        "init_capacity",
        "str",
    ),
    "dtype": (lambda: tensorhash.HashSet(1, "int63", ()), TypeError, "key_dtype", "int64", "int63"),
    "half": (lambda: tensorhash.HashSet(1, "float16", ()), TypeError, "key_dtype", "float16"),
    "shape": (
        lambda: tensorhash.HashSet(1, "int64", (0,)),
        ValueError,
        "key_element_shape",
        "(0,)",
    ),
    "negative": (lambda: tensorhash.HashSet(1, "int64", (-2,)), ValueError, "shape", "-2"),
    "shape text": (
        lambda: tensorhash.HashSet(1, "int64", "a"),
        TypeError,
        "key_element_shape",
        "a",
    ),
    "device": (lambda: tensorhash.HashSet(1, "int64", (), "gpu"), ValueError, "device", "gpu"),
    "cuda": (lambda: o3c.HashSet(1, "int64", (), o3c.Device("CUDA:0")), RuntimeError, "CUDA"),
    "columns": (
        lambda: tensorhash.HashMap(1, "int64", (), value_dtypes=["int8"], value_element_shapes=[]),
        ValueError,
        *("value_element_shapes", "1", "0"),
    ),
    "huge shape": (
        lambda: tensorhash.HashSet(1, "int64", (2, 2**63)),
        ValueError,
        *("key_element_shape", "64 bits", str(2**63)),
    ),
    "huge value shape": (
        lambda: tensorhash.HashMap(1, "int64", (), "int8", -(2**63) - 1),
        ValueError,
        *("value_element_shape", "64 bits", str(-(2**63) - 1)),
    ),
    "huge tensor": (lambda: o3c.Tensor.zeros((1, 2**63)), ValueError, "shape", str(2**63)),
    "no values": (lambda: tensorhash.HashMap(1, "int64", ()), TypeError, "value_dtype", "HashSet"),
    "no values, core": (lambda: o3c.HashMap(1, o3c.int64, ()), TypeError, "value_dtype", "HashSet"),
    "items": (lambda: tensorhash.HashMap.from_items(K, V[:2]), ValueError, "values", "3", "2"),
    "items dtype": (
        lambda: tensorhash.HashMap.from_items(K.astype("f2"), V),
        TypeError,
        *("key", "float16"),
    ),
    "items dict": (
        lambda: tensorhash.HashMap.from_items({1: 2.0}),
        TypeError,
        "keys",
        "an array or a list",
        "got dict; pass list(keys), list(keys.values())",
    ),
    "items text": (lambda: tensorhash.HashMap.from_items("ab", V), TypeError, "keys", "str"),
    "threads": (lambda: tensorhash.set_num_threads(0), ValueError, "1", "0"),
    "unique": (lambda: tensorhash.unique("abc"), TypeError, "array", "str"),
    "from_dlpack": (lambda: o3c.Tensor.from_dlpack(5), TypeError, "__dlpack__", "int"),
    "from_numpy": (lambda: o3c.Tensor.from_numpy([1]), TypeError, "array", "list"),
}


@pytest.mark.parametrize("case", CONSTRUCTORS)
def test_an_error_of_a_constructor_or_function_says_what_was_expected(case):
    call, kind, *words = CONSTRUCTORS[case]
    with pytest.raises(kind) as error:
        call()
    for word in words:
        assert word in str(error.value), str(error.value)
    assert not re.search(r"nanobind|std::|\.cpp|_core\.", str(error.value))


def test_the_message_for_the_wrong_width_shows_the_shape_that_fits():
    three = tensorhash.HashSet(1, "int32", (3,))
    with pytest.raises(ValueError, match=r"keys: expected shape \(N, 3\).*got \(5, 4\)"):
        three.insert(np.zeros((5, 4), dtype=np.int32))


def test_values_of_several_columns_are_named_by_number():
    made = tensorhash.HashMap(
        1, "int64", (), value_dtypes=["int8", "int16"], value_element_shapes=[(), ()]
    )
    with pytest.raises(TypeError, match=r"values\[1\].*int16.*int8"):
        made.insert([1], (np.int8([1]), np.int8([1])))
    with pytest.raises(ValueError, match=r"values\[0\].*row 0.*300"):
        made.insert([1], ([300], [1]))


def test_a_bad_key_is_found_after_many_good_ones():
    with pytest.raises(ValueError, match="row 999"):
        table().find([[i] for i in range(999)] + [[-(2**63) - 1]])


def test_an_error_about_values_says_what_works_for_the_kind_of_table():
    from tensorhash import BoundedHashMap, HashMap, ShardedBoundedHashMap, ShardedHashMap

    with pytest.raises(TypeError, match="for keys without values use HashSet$"):
        HashMap(4, "int64", ())
    for cls, options in (
        (BoundedHashMap, {}),
        (ShardedHashMap, {"devices": ["cpu:0"]}),
        (ShardedBoundedHashMap, {"devices": ["cpu:0"]}),
    ):
        with pytest.raises(
            TypeError, match="without values pass .*=.. and value_element_shapes=..$"
        ):
            cls(4, "int64", (), **options)
        table = cls(4, "int64", (), value_dtypes=[], value_element_shapes=[], **options)
        assert table.activate([1, 2, 1])[1].tolist() == [True, True, False]


def test_an_empty_file_name_is_named_as_such(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (
        lambda: o3c.Tensor([1]).save(""),
        lambda: tensorhash.BoundedHashMap.load(b""),
        lambda: tensorhash.HashMap.load(""),
    ):
        with pytest.raises((ValueError, OSError)) as error:
            call()
        assert "zero bytes" not in str(error.value)
