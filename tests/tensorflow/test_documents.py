"""Every block of README.md and docs/ that needs TensorFlow runs as it stands."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "documents"))
import blocks

PAGES = [page for page in blocks.pages() if "<!-- runs: tensorflow -->" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks.blocks_of(page, "python"):
        if block.where == "tensorflow":
            blocks.run(block, namespace)
