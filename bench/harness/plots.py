"""Draws the plots of README.md and bench/results.md: SVG files for light and dark pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

from harness import store
from harness.case import Sample, Scale
from harness.clock import median
from harness.goals import Verdict
from harness.report import GATHER, OURS, number

# README.md shows the throughput, bench/results.md the goals.
FOLDERS = {
    "throughput": store.ROOT / "docs" / "pictures",
    "goals": store.ROOT / "bench" / "pictures",
}

# Okabe and Ito's colours suit colour-blind readers. Each line also has its own marker.
LINES: dict[str, tuple[str, str, str]] = {
    OURS: ("tensorhash", "", "o"),
    GATHER: ("gather limit", "", ""),
    "absl::flat_hash_map": ("absl::flat_hash_map", "#E69F00", "s"),
    "boost::unordered_flat_map": ("boost::unordered_flat_map", "#009E73", "^"),
    "std::unordered_map": ("std::unordered_map", "#CC79A7", "D"),
    "tbb::concurrent_unordered_map": ("tbb::concurrent_…_map", "#D55E00", "v"),
    "Open3D": ("Open3D", "#D55E00", "P"),
    "dict": ("dict", "#CC79A7", "X"),
}
MISSED = "#E69F00"


@dataclass(frozen=True)
class Theme:
    """Colours that depend on the page. `ours` is a blue that stands out from it."""

    text: str
    grid: str
    ours: str


THEMES = {
    "light": Theme("#1f2328", "#d0d7de", "#0072B2"),
    "dark": Theme("#e6edf3", "#3d444d", "#56B4E9"),
}


@contextmanager
def figure(
    name: str, theme: str, rows: int, columns: int, size: tuple[float, float]
) -> Iterator[Any]:
    """Axes to draw on; writes the file at the end. The same data gives the same bytes."""
    text, grid = THEMES[theme].text, THEMES[theme].grid
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "tensorhash",
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": text,
        "axes.labelcolor": text,
        "axes.titlecolor": text,
        "axes.edgecolor": grid,
        "xtick.color": text,
        "ytick.color": text,
        "grid.color": grid,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
    }
    with plt.rc_context(style):
        drawing, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False
        )
        yield drawing, axes
        FOLDERS[name].mkdir(parents=True, exist_ok=True)
        drawing.savefig(file_of(name, theme), transparent=True, metadata={"Date": None})
        plt.close(drawing)


def file_of(name: str, theme: str) -> Path:
    return FOLDERS[name] / f"{name}-{theme}.svg"


def series(samples: list[Sample], contender: str, **labels: Any) -> tuple[list[int], list[float]]:
    """(rows, million rows per second), ascending."""
    points = {
        s.labels["rows"]: s.labels["rows"] / median(s.seconds) / 1e6
        for s in samples
        if s.contender == contender
        and all(s.labels.get(name) == value for name, value in labels.items())
    }
    return sorted(points), [points[rows] for rows in sorted(points)]


def throughput(scale: Scale, theme: str, machine: str) -> None:
    """Million keys per second by number of keys: find and insert, C++ on one thread, Python on all."""
    cpp, python = (store.load(scale, suite).recorded() for suite in ("cpp", "tables"))
    threads = max((sample.labels["threads"] for sample in cpp), default=1)
    kinds = (
        ("C++, one thread", cpp, {"threads": 1}, list(LINES)[:6]),
        (f"Python, {threads} threads", python, {}, [OURS, GATHER, "Open3D", "dict"]),
    )
    with figure("throughput", theme, 2, 2, (10, 6.4)) as (drawing, axes):
        drawing.supxlabel(machine, fontsize=8)
        for line, (title, samples, where, contenders) in zip(axes, kinds, strict=True):
            for axis, operation in zip(line, ("find (hit)", "insert"), strict=True):
                for contender in contenders:
                    draw_line(
                        axis,
                        theme,
                        contender,
                        *series(samples, contender, key="int64", operation=operation, **where),
                    )
                axis.set_title(f"{operation.split(' ')[0]} · {title}", loc="left", fontsize=11)
                finish(axis)
            line[0].set_ylabel("million int64 keys / s")
            line[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        for axis in axes[1]:
            axis.set_xlabel("keys in the table")


def draw_line(axis: Any, theme: str, contender: str, rows: list[int], speed: list[float]) -> None:
    label, colour, marker = LINES[contender]
    if not rows:
        return
    if contender == GATHER:
        axis.plot(rows, speed, label=label, color=THEMES[theme].text, linestyle="--", linewidth=1.3)
        return
    width = 2.6 if contender == OURS else 1.4
    colour = colour or THEMES[theme].ours
    axis.plot(rows, speed, label=label, color=colour, marker=marker, markersize=5, linewidth=width)


def finish(axis: Any) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.grid(True, which="major", linewidth=0.6)
    axis.tick_params(which="both", length=0)


def goal_bars(verdicts: list[Verdict], theme: str, machine: str) -> None:
    """Measured values as multiples of their goals, the worst at the top, and the missed floors."""
    shown = [v for v in verdicts if v.measured and (v.goal.record is None or v.score < 1)]
    known = sorted(shown, key=lambda v: -v.score)
    with figure("goals", theme, 1, 1, (10, 0.27 * len(known) + 1)) as (drawing, axes):
        drawing.supxlabel(machine, fontsize=8)
        axis = axes[0][0]
        scores = [v.score for v in known]
        colours = [THEMES[theme].ours if score >= 1 else MISSED for score in scores]
        axis.barh(range(len(known)), [s - 1 for s in scores], left=1, color=colours, height=0.66)
        axis.set_yticks(range(len(known)), [v.goal.what for v in known])
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
        axis.set_xlabel("measured, as a multiple of the goal (the worst of its conditions)")
        for place, verdict in enumerate(known):
            axis.annotate(
                f"{worst_text(verdict)}  (goal {verdict.goal_text()})",
                (max(1, verdict.score), place),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        # Room for the text beside the longest bar.
        axis.set_xlim(0.9 * min(1, *scores), 4 * max(1, *scores))
        axis.axvline(1, color=THEMES[theme].text, linewidth=1)
        axis.margins(y=0.01)
        axis.tick_params(which="both", length=0)


def worst_text(verdict: Verdict) -> str:
    decide: Callable[..., float] = max if verdict.goal.at_most else min
    worst = number(decide(verdict.measured.values()))
    return f"{worst}x" if verdict.goal.unit == "x" else worst


def draw(scale: Scale, verdicts: list[Verdict], machine: str) -> list[Path]:
    """Draws all plots that have data. Returns the files."""
    made = []
    for theme in THEMES:
        if store.load(scale, "cpp").samples or store.load(scale, "tables").samples:
            throughput(scale, theme, machine)
            made.append(file_of("throughput", theme))
        if any(v.measured for v in verdicts):
            goal_bars(verdicts, theme, machine)
            made.append(file_of("goals", theme))
    return made
