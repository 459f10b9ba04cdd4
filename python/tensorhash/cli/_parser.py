"""The arguments of all commands."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

import tensorhash
from tensorhash.cli import completion, convert, demo, info, inspect, mesh, unique, view, voxelize

COMMANDS = (info, demo, voxelize, unique, mesh, convert, view, inspect, completion)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error on one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {' '.join(message.split())}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def make_parser() -> Parser:
    """The parser of `tensorhash`, with one subparser per command."""
    parser = Parser(
        prog="tensorhash",
        description="Point clouds, voxels, distinct rows and table files, from the shell.",
        epilog="Example: tensorhash voxelize scan.ply thin.ply --size 0.1",
    )
    parser.add_argument(
        "--version", action="version", version=f"tensorhash {tensorhash.__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        summary = (command.__doc__ or "").partition("\n")[0]
        name = command.__name__.rpartition(".")[2]
        subparser = commands.add_parser(
            name, help=summary[0].lower() + summary[1:].rstrip("."), description=command.__doc__
        )
        command.add(subparser)
        subparser.set_defaults(run=command.run)
    return parser
