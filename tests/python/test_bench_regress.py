"""The check of instruction counts: more than +1 % fails, and exceptions need a reason."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def regress(tmp_path):
    """compare() of invented counts with a baseline of 1,000,000 each, with these exceptions."""
    module = runpy.run_path(str(ROOT / "bench" / "regress" / "regress.py"))
    scope = module["compare"].__globals__
    scope["EXCEPTIONS"] = tmp_path / "exceptions.json"

    def run(exceptions: object = None, **counts: int) -> None:
        scope["EXCEPTIONS"].write_text(json.dumps(exceptions or {}))
        scope["count"] = lambda: ("gcc", counts)
        module["compare"]({"gcc": dict.fromkeys(counts, 1_000_000)})

    return run


def test_one_percent_is_allowed_and_no_more(regress, capsys):
    regress(find=1_010_000, insert=900_000)
    assert "all 2 workloads are within 1% of the baseline" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        regress(find=1_010_001, insert=900_000)
    assert (
        "find: expected 1,000,000 instructions, got 1,010,001 (+1.00%)" in capsys.readouterr().err
    )


def test_an_exception_allows_what_it_says(regress, capsys):
    exceptions = {"find": {"most": 0.03, "reason": "It does more."}}
    regress(exceptions, find=1_030_000, insert=1_000_000)
    with pytest.raises(SystemExit):
        regress(exceptions, find=1_030_001, insert=1_000_000)
    assert "3% more are allowed" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        regress(exceptions, find=1_000_000, insert=1_020_000)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"most": 0.03}, '"reason": expected a sentence, got None'),
        ({"most": 0.03, "reason": " "}, '"reason": expected a sentence'),
        ({"reason": "Why not."}, '"most": expected 0.01 < most < 1, got None'),
        ({"most": 0.005, "reason": "Why not."}, '"most": expected 0.01 < most < 1, got 0.005'),
    ],
)
def test_an_exception_without_a_reason_or_a_limit_is_refused(regress, capsys, entry, message):
    with pytest.raises(SystemExit):
        regress({"find": entry}, find=1_000_000)
    assert message in capsys.readouterr().err


def test_an_exception_for_an_unknown_workload_is_refused(regress, capsys):
    with pytest.raises(SystemExit):
        regress({"fnid": {"most": 0.03, "reason": "Why not."}}, find=1_000_000)
    assert "there is no workload 'fnid'" in capsys.readouterr().err


def test_committed_exceptions_have_reasons():
    for name, entry in json.loads((ROOT / "bench/regress/exceptions.json").read_text()).items():
        assert 0.01 < entry["most"] < 0.1, name
        assert len(entry["reason"]) > 20, name
