"""The arguments of all commands."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
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


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command. Ends the process if they are wrong."""
    parser = make_parser()
    options, rest = parser.parse_known_args(_joined(arguments))
    parser.prog = f"tensorhash {options.command}"
    if hasattr(options, "needs_output"):
        rest = _choose_output(parser, options, rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _choose_output(parser: Parser, options: argparse.Namespace, rest: list[str]) -> list[str]:
    """Sets `output`, also from after the options or from -o; returns the arguments left."""
    # argparse looks for an optional output only before the options.
    if options.output is None and len(rest) == 1 and not rest[0].startswith("-"):
        options.output = rest.pop()
    if options.named_output is not None:
        if options.output is not None:
            parser.error(f"expected one output, got {options.output} and -o {options.named_output}")
        options.output = options.named_output
    if options.needs_output and options.output is None and not rest:
        parser.error("the following arguments are required: output")
    return rest


def _joined(arguments: Sequence[str]) -> list[str]:
    """The arguments with "--origin=-1,0,0" for "--origin", "-1,0,0", which argparse refuses."""
    joined: list[str] = []
    for word in arguments:
        if joined and re.fullmatch("--[a-z-]+", joined[-1]) and re.match(r"-[\d.]", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined
