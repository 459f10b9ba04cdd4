"""Open3D's API: use `import tensorhash.core as o3c` in place of `import open3d.core as o3c`.

>>> import tensorhash.core as o3c
>>> m = o3c.HashMap(10, o3c.int64, (1,), o3c.int64, (1,), o3c.Device("CPU:0"))
>>> indices, masks = m.insert(o3c.Tensor([[100], [200]]), o3c.Tensor([[1], [2]]))
"""

from tensorhash._device import Device
from tensorhash._dtypes import Dtype
from tensorhash.core import _device_tensor as _device_tensor  # it registers itself
from tensorhash.core import cuda, sycl
from tensorhash.core.functions import (
    addmm,
    append,
    concatenate,
    det,
    inv,
    lstsq,
    lu,
    lu_ipiv,
    matmul,
    maximum,
    minimum,
    solve,
    svd,
    tril,
    triu,
    triul,
)
from tensorhash.core.hash_tables import HashMap, HashSet
from tensorhash.core.size_vector import SizeVector
from tensorhash.core.tensor import Tensor

undefined = Dtype.Undefined
bool = Dtype.Bool
bool8 = Dtype.Bool
int8 = Dtype.Int8
int16 = Dtype.Int16
int32 = Dtype.Int32
int64 = Dtype.Int64
uint8 = Dtype.UInt8
uint16 = Dtype.UInt16
uint32 = Dtype.UInt32
uint64 = Dtype.UInt64
float16 = Dtype.Float16
bfloat16 = Dtype.BFloat16
float32 = Dtype.Float32
float64 = Dtype.Float64

__all__ = [
    "Device",
    "Dtype",
    "HashMap",
    "HashSet",
    "SizeVector",
    "Tensor",
    "addmm",
    "append",
    "bfloat16",
    "bool",
    "bool8",
    "concatenate",
    "cuda",
    "det",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "inv",
    "lstsq",
    "lu",
    "lu_ipiv",
    "matmul",
    "maximum",
    "minimum",
    "solve",
    "svd",
    "sycl",
    "tril",
    "triu",
    "triul",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "undefined",
]
