"""Run the demo: real LiDAR scans, times beside NumPy's, pictures and a report."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tensorhash.cli._output import Progress


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument(
        "--output",
        default="tensorhash-demo",
        help="folder of pictures and report; tensorhash-demo if not given",
    )
    parser.add_argument(
        "--synthetic", action="store_true", help="use a synthetic street; download nothing"
    )
    parser.add_argument(
        "--torch", action="store_true", help="also train two networks, which needs torch"
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
    if options.torch:
        _require_torch()
    from tensorhash.cli.demo.tour import STEPS, TORCH_STEPS, tour

    start = time.perf_counter()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    with Progress(STEPS + TORCH_STEPS * options.torch, enabled=True) as progress:
        result = tour(folder, options.synthetic, progress, options.torch)
    print("\n".join(result.lines))
    seconds = time.perf_counter() - start
    print(f"\n  {result.pictures} pictures and a report in {seconds:.0f} s: {result.report}")
    sys.stdout.flush()
    return 0


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError(
            "--torch needs torch, which cannot be imported here; pip install torch"
        ) from None
