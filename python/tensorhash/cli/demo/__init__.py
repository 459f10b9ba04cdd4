"""Run the demo: real LiDAR scans, times beside NumPy's, pictures and a report."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tensorhash.cli._output import Progress


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("--output", default="tensorhash-demo", help="folder of pictures and report")
    parser.add_argument(
        "--synthetic", action="store_true", help="use a synthetic street; download nothing"
    )


def run(options: argparse.Namespace) -> int:
    """Runs all steps, prints the table, writes pictures and report."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "the demo needs matplotlib, which cannot be imported here; "
            "pip install 'tensorhash[demo]'"
        ) from None
    from tensorhash.cli.demo.tour import tour

    start = time.perf_counter()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    with Progress(10, enabled=True) as progress:
        result = tour(folder, options.synthetic, progress)
    print("\n".join(result.lines))
    seconds = time.perf_counter() - start
    print(f"\n  {result.pictures} pictures and a report in {seconds:.0f} s: {result.report}")
    sys.stdout.flush()
    return 0
