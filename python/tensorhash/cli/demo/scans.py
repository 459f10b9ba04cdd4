"""The two scans of the demo: real ones from the package index, or a synthetic street.

The real ones are the overlapping LiDAR scans in the source distribution of small_gicp 1.0.1 (MIT
licence). pip downloads it and checks its sha256 before anything of it is used; it is not built.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tensorhash import io
from tensorhash._types import NumPyArray

_NAME = "small_gicp-1.0.1"
_SDIST_SHA256 = "e0b1a03a87da154b53b489cce7079b5be02ba17723f89c4161f8311b564ca0b1"
_SHA256 = {
    "target.ply": "e754d477ebaebba42a0e036e856f6bfdca964e8e092d3f823b5b45427bec3445",
    "source.ply": "f94fd33a33121dcc24d47e61d8cdbe75e6ecdad8bff1df176735cc6872967b82",
    "T_target_source.txt": "2c053402ed7b40d6da353395e4ccb4e40ee5e7d44397ef06e4c61cd674204add",
}
_SECONDS = 60  # for one try of pip


class Scans(NamedTuple):
    """Two scans in the frame of the first, in metres."""

    name: str  #: where they come from, for titles
    clouds: tuple[NumPyArray, NumPyArray]  #: float32 [N, 3] each
    origins: tuple[NumPyArray, NumPyArray]  #: float64 [3] each: where the scanner stood
    dropped: int  #: rows without a return, which are not in the clouds

    @property
    def points(self) -> NumPyArray:
        """All points, those of the first scan first."""
        return np.concatenate(self.clouds)


def load(folder: Path) -> Scans:
    """The real scans; downloads them into `folder` if they are not there.

    OSError or ValueError says why they cannot be used.
    """
    if not all(_is_good(folder / name) for name in _SHA256):
        _download(folder)
    target = io.read(folder / "target.ply").points
    source = io.read(folder / "source.ply").points
    pose = np.loadtxt(folder / "T_target_source.txt")
    returns = [points[(points != 0).any(axis=1)] for points in (target, source)]
    moved = returns[1] @ pose[:3, :3].T + pose[:3, 3]
    return Scans(
        "two LiDAR scans (small_gicp)",
        (returns[0], moved.astype(np.float32)),
        (np.zeros(3), pose[:3, 3]),
        len(target) + len(source) - len(returns[0]) - len(returns[1]),
    )


def _is_good(path: Path) -> bool:
    return path.is_file() and _hash(path.read_bytes()) == _SHA256[path.name]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _download(folder: Path) -> None:
    """Takes the files out of the source distribution; ValueError if one is not as expected."""
    with tempfile.TemporaryDirectory() as place:
        archive = Path(place) / f"{_NAME}.tar.gz"
        _run_pip(Path(place))
        if not archive.is_file() or _hash(archive.read_bytes()) != _SDIST_SHA256:
            raise ValueError(
                f"{archive.name}: expected sha256 {_SDIST_SHA256[:16]}..., got another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as contents:
            for name, expected in _SHA256.items():
                member = contents.extractfile(f"{_NAME}/data/{name}")
                content = b"" if member is None else member.read()
                if _hash(content) != expected:
                    raise ValueError(f"{name}: expected sha256 {expected[:16]}..., got another")
                (folder / name).write_bytes(content)


def _run_pip(place: Path) -> None:
    """Downloads the source distribution. pip checks its hash before it reads the metadata."""
    wanted = place / "wanted.txt"
    wanted.write_text(f"small-gicp==1.0.1 --hash=sha256:{_SDIST_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--no-binary", ":all:", "--retries", "0"]
    command += ["--timeout", "15", "-r", str(wanted), "-d", str(place)]
    # Without isolation pip needs no further packages, but its build backend must be there.
    for isolation in (["--no-build-isolation"], []):
        try:
            done = subprocess.run(
                [*command, *isolation], capture_output=True, text=True, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise OSError(f"pip gave no answer in {_SECONDS} seconds") from None
        if done.returncode == 0:
            return
        if "No matching distribution" in done.stderr or "No module named pip" in done.stderr:
            break
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    raise OSError(f"pip could not download small-gicp 1.0.1: {(lines or ['no reason'])[-1]}")


def synthetic(beams: int = 64, turns: int = 1080, seed: int = 7) -> Scans:
    """A street with houses, cars and poles, seen by a spinning LiDAR from two places."""
    rng = np.random.default_rng(seed)
    boxes = _street(rng)
    origins = np.array([[0.0, 0, 0]]), np.array([[2.5, 0.4, 0.0]])
    clouds = tuple(_scan(boxes, origin[0], beams, turns, rng) for origin in origins)
    rays = beams * turns * len(clouds)
    return Scans(
        "two scans of a synthetic street",
        (clouds[0], clouds[1]),
        (origins[0][0], origins[1][0]),
        rays - len(clouds[0]) - len(clouds[1]),
    )


def _street(rng: np.random.Generator) -> NumPyArray:
    """Boxes [B, 2, 3] as (low, high) corners: ground, houses, cars, poles. z = 0 is the scanner."""
    ground = -1.8
    boxes = [[[-60.0, -60.0, ground - 1], [60.0, 60.0, ground]]]

    def add(x: float, y: tuple[float, float], wide: float, high: float) -> None:
        boxes.append([[x, min(y), ground], [x + wide, max(y), ground + high]])

    for side in (-1, 1):
        x = -42.0
        while x < 40:
            wide, near = rng.uniform(8, 14), side * rng.uniform(9.5, 11.5)
            add(x, (near, near + side * rng.uniform(8, 11)), wide, rng.uniform(5, 11))
            x += wide + rng.uniform(0, 5)
        for at in (np.arange(-36, 38, 7.5) + rng.uniform(-1, 1)).tolist():
            add(at, (side * 6 - 0.9, side * 6 + 0.9), 4.2, 1.45)
            add(at + 5.6, (side * 7.7 - 0.1, side * 7.7 + 0.1), 0.2, 4)
    return np.array(boxes)


def _scan(
    boxes: NumPyArray, origin: NumPyArray, beams: int, turns: int, rng: np.random.Generator
) -> NumPyArray:
    """The first hit of each ray within 60 m, with 1 cm of noise along the ray."""
    up = np.radians(np.linspace(-24, 15, beams))[:, None]
    around = np.linspace(-np.pi, np.pi, turns, endpoint=False)[None, :]
    rays = np.stack(
        [np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up) + 0 * around], axis=-1
    ).reshape(-1, 3)
    nearest = np.full(len(rays), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for low, high in boxes - origin:
            enter = np.minimum(low / rays, high / rays).max(axis=1)
            leave = np.maximum(low / rays, high / rays).min(axis=1)
            hit = (enter <= leave) & (enter > 0.5)
            nearest = np.where(hit & (enter < nearest), enter, nearest)
    seen = nearest < 60
    far = nearest[seen] + rng.normal(scale=0.01, size=int(seen.sum()))
    points: NumPyArray = (rays[seen] * far[:, None] + origin).astype(np.float32)
    return points
