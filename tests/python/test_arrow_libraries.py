"""Columns of libraries that we read through the Arrow PyCapsule interface alone: DuckDB, nanoarrow, streams."""

import numpy as np
import pytest
from oracle import refused

import tensorhash as th
from tensorhash.data import group_by


def test_a_stream_that_can_be_read_once():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"s": ["a", "b", "a"], "n": [1, 2, 4]})
    assert group_by(table.select(["s"]).to_reader()).agg(rows="count")["rows"].tolist() == [2, 1]
    nano = pytest.importorskip("nanoarrow")
    words = [nano.ArrayStream(["a", "b", "a"], nano.string()) for _ in range(3)]
    numbers = [nano.ArrayStream([1, 2, 4], nano.int64()) for _ in range(2)]
    assert group_by(words[0]).agg(sum=numbers[0])["sum"].tolist() == [5, 2]
    assert th.factorize(words[1]).uniques.tolist() == ["a", "b"]
    assert th.StringIndex().insert(words[2]).tolist() == [0, 1, 0]
    assert th.isin(numbers[1], [4, 1]).tolist() == [True, False, True]


def test_arrays_of_nanoarrow():
    nano = pytest.importorskip("nanoarrow")
    words, numbers = nano.Array(["a", "b", "a"], nano.string()), nano.Array([7, 8, 7], nano.int32())
    assert group_by((words, numbers)).agg(sum=numbers)["sum"].tolist() == [14, 8]
    assert th.join(numbers, np.int32([7])).left.tolist() == [0, 2]
    refused(lambda: group_by(nano.Array([7, None], nano.int32())), "nulls", "row 1")


def test_relations_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    rows = "('a', 1, date '2024-01-01'), ('b', 2, date '2024-01-02'), ('a', 4, date '2024-01-01')"
    relation = duckdb.sql(f"select * from (values {rows}) as t(shop, n, day)")
    got = group_by(relation.select("shop", "day")).agg(sum=relation.select("n"))
    assert got["shop"].tolist() == ["a", "b"] and got["sum"].tolist() == [5, 2]
    assert got["day"].tolist() == np.array(["2024-01-01", "2024-01-02"], "M8[D]").tolist()
    assert th.join(relation.select("n"), [4, 2]).left.tolist() == [1, 2]
    assert th.StringIndex().insert(relation.select("shop")).tolist() == [0, 1, 0]
