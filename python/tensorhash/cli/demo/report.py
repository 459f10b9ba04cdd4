"""The table of times, and the report in HTML."""

from __future__ import annotations

import html
import os
import platform
from pathlib import Path

import numpy as np

import tensorhash
from tensorhash.cli.demo.stages import Timing

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
figure { margin: 2rem 0 } img { max-width: 100%; border: 1px solid #ddd }
figcaption { color: #555 }
"""


def milliseconds(seconds: float | None) -> str:
    """Milliseconds with three digits, or a dash."""
    if seconds is None:
        return "-"
    value = seconds * 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cells(timing: Timing) -> tuple[str, ...]:
    """The cells of one line."""
    factor = "-" if timing.numpy is None else f"{timing.numpy / timing.ours:.1f}x"
    times = milliseconds(timing.ours), milliseconds(timing.numpy)
    return timing.step, f"{timing.rows:,}", *times, factor


RULE = (
    "Both libraries must give the same results, or the demo fails. Median of three runs; "
    "steps above a second run once"
)
HEADS = ("step", "rows", "tensorhash ms", "NumPy ms", "faster")


def text_table(timings: list[Timing]) -> str:
    """The table for a terminal."""
    rows = [HEADS, *map(cells, timings)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    return "\n".join(f"  {line}" for line in lines)


def machine() -> str:
    """What the times were measured on."""
    return (
        f"tensorhash {tensorhash.__version__}, NumPy {np.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, {tensorhash.get_num_threads()} of "
        f"{os.cpu_count()} threads"
    )


def write(folder: Path, timings: list[Timing], captions: dict[str, str], facts: list[str]) -> Path:
    """Writes index.html beside the pictures."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in HEADS)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells(one)) + "</tr>"
        for one in timings
    )
    figures = "\n".join(
        f'<figure><img src="{name}" alt="{html.escape(caption)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for name, caption in captions.items()
    )
    items = "\n".join(f"<p>{html.escape(fact[:1].upper() + fact[1:])}.</p>" for fact in facts)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tensorhash demo</title>
<style>{_STYLE}</style></head><body>
<h1>tensorhash demo</h1>
{items}
<table><thead><tr>{head}</tr></thead><tbody>
{rows}
</tbody></table>
<p>{RULE}. {html.escape(machine())}.</p>
{figures}
</body></html>
"""
    path = folder / "index.html"
    path.write_text(page)
    return path
