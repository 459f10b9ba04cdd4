"""Every Python block of README.md and docs/ runs as it stands."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "documents"))
import blocks

PAGES = [page for page in blocks.pages() if blocks.blocks_of(page, "python")]
ELSEWHERE = ("tensorflow", "torchrun")


@pytest.mark.parametrize("page", PAGES, ids=blocks.name_of)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks.blocks_of(page, "python"):
        if block.where.startswith("never, because "):
            continue
        assert block.where in ("", *ELSEWHERE), f"{block.page}:{block.line}: {block.where}"
        if block.where == "":
            skip_without_framework(block)
            blocks.run(block, namespace)


def skip_without_framework(block):
    for framework in ("torch", "jax"):
        if f"import {framework}" in block.code or f"tensorhash.{framework}" in block.code:
            pytest.importorskip(framework)


def test_the_block_for_ranks_runs_on_two_of_them(run_program):
    pytest.importorskip("torch")
    found = [
        block
        for page in PAGES
        for block in blocks.blocks_of(page, "python")
        if block.where == "torchrun"
    ]
    assert found
    for block in found:
        run_program(START_RANKS, arguments=[block.code])


START_RANKS = """
    import subprocess, sys, tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(sys.argv[1])
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node=2", "train.py"]
        sys.exit(subprocess.run(command, cwd=folder).returncode)
"""


LINKED = [*blocks.ROOT.glob("*.md"), *(blocks.ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", LINKED, ids=blocks.name_of)
def test_links_between_files_lead_somewhere(page):
    links = re.findall(r"\[[^\]]+\]\(([^)#\s]+)[^)]*\)", page.read_text())
    files = [link for link in links if not link.startswith(("http://", "https://", "mailto:"))]
    assert [link for link in files if not (page.parent / link).exists()] == []


def test_a_false_claim_fails():
    block = blocks.Block("page.md", 1, "python", "", "x = [1, 2]\nx  # [1, 3]\n")
    with pytest.raises(AssertionError, match="page.md:2"):
        blocks.run(block, {})


def test_claims_of_arrays_are_compared():
    code = "import numpy as np\nnp.arange(3)  # [0, 1, 2]\nnp.arange(3)  # not a literal\n"
    assert blocks.run(blocks.Block("page.md", 1, "python", "", code), {}) == 1
