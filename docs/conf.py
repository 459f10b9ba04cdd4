"""Sphinx configuration of the documentation. `make docs` builds it.

The Python reference imports the installed package. The C++ reference reads the XML that Doxygen wrote to the folder in
TENSORHASH_DOXYGEN_XML.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent

project = "tensorhash"
author = "the authors of tensorhash"
VERSION_HEADER = (HERE.parent / "include/tensorhash/version.hpp").read_text()
release = version = re.search(r'#define TENSORHASH_VERSION "([0-9.]+)"', VERSION_HEADER)[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"tensorhash {release}"
html_static_path: list[str] = []

myst_heading_anchors = 4
# Code blocks without a language are plain text.
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "inherited-members": "tuple,int,Enum"}
# In docstrings, `name` is code.
default_role = "code"

breathe_projects = {"tensorhash": os.environ.get("TENSORHASH_DOXYGEN_XML", "")}
breathe_default_project = "tensorhash"
breathe_default_members = ("members",)
cpp_id_attributes = ["TH_API"]

linkcheck_timeout = 5
linkcheck_retries = 1

# Files outside of docs/ that pages link to: readers of the site get them as downloads.
suppress_warnings = ["myst.xref_missing_outside"]


DECISIONS = "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def list_pages(app, page, source):
    """Fills the list of guides in index.md with all pages of docs/ that index.md does not name.

    So a new page needs no entry. The list of decisions gets a table of contents in the same way:
    its own links are enough for readers of the repository.
    """
    if page == "index":
        named = set(re.findall(r"^[a-z0-9/-]+$", source[0], re.M))
        pages = {path.stem for path in HERE.glob("*.md")} - named - {"index"}
        source[0] = source[0].replace("(all other pages)", "\n".join(sorted(pages)))
    elif page == "decisions/README":
        source[0] += DECISIONS


INLINE_CODE = re.compile(r"(`+[^`]+`+)")


def plain_docstring(app, what, name, obj, options, lines):
    """Keeps reStructuredText from reading `[N, *shape]` or `x_` in a docstring as markup."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and line.strip() != "")
        if not example:
            parts = INLINE_CODE.split(line)
            parts[::2] = [re.sub(r"([*|])|_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def setup(app):
    app.connect("source-read", list_pages)
    app.connect("autodoc-process-docstring", plain_docstring)
