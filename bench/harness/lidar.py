"""A real LiDAR scan to measure with, from the source package of small_gicp (PyPI, MIT)."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from harness.store import BUILD

PACKAGE = "small-gicp==1.0.1"
MEMBER = "data/target.ply"
SHA256_BEGINS = "e754d477ebaebba42a0e"
CACHE = BUILD / "target.ply"


def _download() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "--no-deps", "--no-binary", ":all:", "-d", folder]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, PACKAGE], check=True)
        archive = next(Path(folder).glob("*.tar.gz"))
        with tarfile.open(archive) as tar:
            name = next(name for name in tar.getnames() if name.endswith(MEMBER))
            member = tar.extractfile(name)
            assert member is not None
            return member.read()


def points() -> np.ndarray:
    """float64 [N, 3], in metres, without the rows that have no return."""
    if not CACHE.exists():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        CACHE.write_bytes(_download())
    content = CACHE.read_bytes()
    if not hashlib.sha256(content).hexdigest().startswith(SHA256_BEGINS):
        raise RuntimeError(f"{CACHE}: expected another SHA-256; remove the file and try again")
    stream = io.BytesIO(content)
    properties: list[str] = []
    for line in iter(lambda: stream.readline().decode().strip(), "end_header"):
        if line.startswith("property"):
            properties.append(line.split()[-1])
    rows = np.frombuffer(stream.read(), "<f4").reshape(-1, len(properties))
    scan = rows[:, [properties.index(axis) for axis in "xyz"]].astype(np.float64)
    return scan[np.any(scan != 0, axis=1)]


@cache
def voxels(count: int, size: float = 0.05) -> np.ndarray:
    """int32 [count, 4], distinct: several batches of the scan, each turned by another angle."""
    scan, parts, found = points(), [], 0
    for batch in range(10_000):
        angle = 0.37 * batch
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned = np.column_stack([scan[:, :2] @ turn, scan[:, 2]])
        cells = np.unique(np.floor(turned / size).astype(np.int32), axis=0)
        parts.append(np.column_stack([np.full(len(cells), batch, np.int32), cells]))
        found += len(cells)
        if found >= count:
            break
    together = np.concatenate(parts)[:count]
    return np.random.default_rng(0).permutation(together)
