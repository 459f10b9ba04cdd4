"""Show a point cloud and its voxels in the browser, on a page of this machine only."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser

from tensorhash import io
from tensorhash.cli import _parser_types
from tensorhash.view import serve


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("input", help="point cloud: .ply, .xyz, .npy, .npz, .las, .laz")
    parser.add_argument("--size", type=_parser_types.positive, help="edge of a voxel at the start")
    parser.add_argument(
        "--port", type=_parser_types.port, default=0, help="a free one if not given"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(options: argparse.Namespace) -> int:
    """Serves the page until Ctrl-C."""
    cloud = io.read(options.input)

    def ready(address: str) -> None:
        print(f"{address}\nCtrl-C ends the page.", flush=True)
        if not options.no_browser:
            webbrowser.open(address)

    try:
        name = os.path.basename(options.input)
        serve(cloud.points, name, size=options.size, port=options.port, ready=ready)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0
