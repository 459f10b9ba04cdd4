"""The command line: `tensorhash COMMAND ...`, also `python -m tensorhash`.

Bad input is one line on stderr and exit code 2. Each command is a module with `add`, which
describes its arguments, and `run`, which does the work and returns the exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tensorhash.cli._parser import parse

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code.

    >>> main(["info", "--json"])  # doctest: +SKIP
    0
    """
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output has ended, as in `tensorhash info | head -1`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError) as error:
        print(f"tensorhash {options.command}: {_sentence(error)}", file=sys.stderr)
        return 2


def _sentence(error: BaseException) -> str:
    """The message of an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
