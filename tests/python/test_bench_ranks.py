"""The model of distributed calls, against sums that can be checked by hand."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

from harness.ranks_model import UNCUT, Call, Network, call, main, simulate

NETWORK = Network(latency=1e-3, message=1e-4, bandwidth=1e9, chunk=1 << 20)


def test_one_rank_sends_nothing():
    assert simulate(1, 1000, 0.5, call("insert", 8, 64), NETWORK) == pytest.approx(0.5)


def test_two_ranks_are_a_sum():
    # Half of 1,024 rows travels: 2 MiB there in two chunks and 4 kB in one, 4 kB back; three
    # agreements of one small message.
    sent = Call(rounds=[[1 << 12, 8], [8]], agreements=3)
    got = simulate(2, 1024, 0.5, sent, NETWORK)
    there = 1e-3 + 3 * 1e-4 + (1 << 21) / 1e9 + 512 * 8 / 1e9
    back = 1e-3 + 1e-4 + 512 * 8 / 1e9
    assert got == pytest.approx(0.5 + 3 * (1e-3 + 1e-4) + there + back)


def test_shared_memory_is_not_cut_into_chunks():
    sent = Call(rounds=[[1 << 12]], agreements=1)
    got = simulate(2, 1024, 0.0, sent, NETWORK._replace(chunk=UNCUT))
    assert got == pytest.approx(2 * (1e-3 + 1e-4) + (1 << 21) / 1e9)


def test_many_ranks_are_bound_by_their_links_and_by_the_slowest():
    sent = call("get", 8, 64)
    ranks, rows = 16, 1_000_000
    network = NETWORK._replace(latency=0, message=0)
    leaving = (8 + 64) * rows * (ranks - 1) / ranks / network.bandwidth
    got = simulate(ranks, rows, 0.1, sent, network)
    assert got == pytest.approx(0.1 + leaving)  # every link is busy all the time
    uneven = simulate(ranks, rows, 0.1, sent, network, spread=0.2)
    assert got + 0.01 < uneven < got + 0.1
    assert simulate(ranks, rows, 0.1, sent, NETWORK) > got + 3e-3


def test_the_docs_have_the_table_that_the_model_prints(capsys):
    main()
    page = pathlib.Path(__file__).parents[2] / "docs" / "scaling.md"
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 9
    assert "\n".join(rows) in page.read_text()
