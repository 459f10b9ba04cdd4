"""Sphinx configuration of the documentation. `make docs` builds it.

The Python reference imports the installed package. The C++ reference reads the XML that Doxygen wrote to the folder in
TENSORHASH_DOXYGEN_XML.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.util import inspect

HERE = Path(__file__).resolve().parent

project = "tensorhash"
author = "the authors of tensorhash"
VERSION_HEADER = (HERE.parent / "include/tensorhash/version.hpp").read_text()
release = version = re.search(r'#define TENSORHASH_VERSION "([0-9.]+)"', VERSION_HEADER)[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"tensorhash {release}"
html_show_copyright = False

myst_heading_anchors = 4
# Code blocks without a language are plain text.
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "inherited-members": "tuple,int,str,Enum,Module"}
# Documented without TensorFlow, which needs an environment of its own, and without its compiled
# ops.
autodoc_mock_imports = ["tensorflow", "keras", "tensorhash.tensorflow._ops"]
# In docstrings, `name` is code.
default_role = "code"

breathe_projects = {"tensorhash": os.environ.get("TENSORHASH_DOXYGEN_XML", "")}
breathe_default_project = "tensorhash"
breathe_default_members = ("members",)
breathe_show_include = False
# Every header opens the namespace again.
suppress_warnings = ["duplicate_declaration.cpp"]

linkcheck_timeout = 5
linkcheck_retries = 1


DECISIONS = "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def adapt_page(app, page, source):
    """Changes what reads well in the repository, but not on the site.

    The list of guides in index.md gets all pages of docs/ that index.md does not name, so a new
    page needs no entry. The list of decisions gets a table of contents.
    """
    # Links to Markdown files above docs/. On the site these files are downloads.
    outside = "../" * (page.count("/") + 1)
    source[0] = re.sub(rf"\]\({re.escape(outside)}(?=\S+\.md\))", f"](path:{outside}", source[0])
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
            lines[number] = plain_line(line)


def plain_line(line):
    """One line of a docstring. The rows of a table become lines of their own."""
    start = ""
    if line.startswith("|"):
        cells = (cell.strip("- ") for cell in line.split("|"))
        start, line = "| ", ": ".join(filter(None, cells))
    parts = INLINE_CODE.split(line)
    parts[::2] = [re.sub(r"[*|]|_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
    # An escaped space, which does not show, separates code from what touches it: `size`^3.
    return start + re.sub(r"(?<=\S)\0(?=\S)", r"\\ ", "\0".join(parts)).replace("\0", "")


def own_signature(app, what, name, obj, options, signature, returns):
    """The arguments of a class with a mocked base: those of its own __init__, not of the mock."""
    if what == "class" and name.startswith("tensorhash.tensorflow."):
        own = inspect.signature(obj.__init__, bound_method=True)
        return inspect.stringify_signature(own, unqualified_typehints=True), returns
    return None


def setup(app):
    app.connect("autodoc-process-signature", own_signature)
    app.connect("source-read", adapt_page)
    app.connect("autodoc-process-docstring", plain_docstring)
