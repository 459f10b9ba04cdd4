"""The comparison with Open3D's wheel; shares the TSDF loop with tests/python."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
