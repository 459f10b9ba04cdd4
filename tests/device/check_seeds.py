"""Checks that every kernel body ran with enough seeds.

usage: check_seeds.py FOLDER SEEDS

Each file of FOLDER is from one process of the tests: lines "body<TAB>seed", with "-" for a body that it knows.
"""

import sys
from pathlib import Path


def main() -> None:
    folder, least = Path(sys.argv[1]), int(sys.argv[2])
    seeds: dict[str, set[str]] = {}
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            body, seed = line.split("\t")
            seeds.setdefault(body, set()).update({seed} - {"-"})
    few = {body: len(ran) for body, ran in seeds.items() if len(ran) < least}
    for body, count in sorted(few.items()):
        print(f"{body}: {count} seeds, expected {least}", file=sys.stderr)
    if few or not seeds:
        sys.exit(f"{len(few)} of {len(seeds)} bodies ran with too few seeds")
    print(f"    {len(seeds)} bodies, each with at least {min(map(len, seeds.values()))} seeds")


if __name__ == "__main__":
    main()
