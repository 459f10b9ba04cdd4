"""Reads the output of Sphinx's linkcheck. usage: check_links.py OUTPUT.JSON

A link that the server answers with an error fails. A server that cannot be reached is a message: the machine may be
offline.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def main() -> None:
    lines = Path(sys.argv[1]).read_text().splitlines()
    links = [json.loads(line) for line in lines]
    broken = [link for link in links if link["status"] == "broken"]
    # linkcheck quotes the answer of a server as "404 Client Error: Not Found for url: ...".
    dead = [link for link in broken if re.match(r"(404|410) ", link["info"])]
    unreached = len(broken) - len(dead)
    if unreached:
        print(f"    {unreached} external links could not be reached and were not checked")
    for link in dead:
        print(f"docs/{link['filename']}:{link['lineno']}: {link['uri']}: {link['info']}")
    sys.exit(bool(dead))


if __name__ == "__main__":
    main()
