"""python -m tensorhash: the command line."""

import sys

from tensorhash.cli import main

if __name__ == "__main__":
    sys.exit(main())
