"""Reads and writes point clouds and meshes: PLY, XYZ, NPY, NPZ, and with laspy LAS and LAZ.

>>> import os, tempfile
>>> import numpy as np
>>> from tensorhash import io
>>> path = os.path.join(tempfile.mkdtemp(), "scan.ply")
>>> io.write(path, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], {"intensity": np.float32([0.5, 1.0])})
>>> cloud = io.read(path)
>>> cloud.points.tolist(), cloud.attributes["intensity"].tolist()
([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [0.5, 1.0])
"""

from tensorhash.io._cloud import PointCloud, TriangleMesh
from tensorhash.io._formats import SUFFIXES, read, write
from tensorhash.io._mesh import read_mesh, write_mesh

__all__ = [
    "SUFFIXES",
    "PointCloud",
    "TriangleMesh",
    "read",
    "read_mesh",
    "write",
    "write_mesh",
]
