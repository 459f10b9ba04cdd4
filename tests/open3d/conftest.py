"""The comparison with Open3D's wheel; it shares the TSDF loop with the tests in tests/python."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
