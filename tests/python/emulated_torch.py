"""An emulated device for torch: `torch.device("emu:0")`, with tensors that tables on `emu:0` share.

torch computes with copies on the CPU. A function that mixes tensors of the device with others, or
reads one without a copy, fails as on a GPU.
"""

import functools

import torch
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from tensorhash import _core
from tensorhash._frameworks import framework

LIBRARY = torch.library.Library("aten", "IMPL")
MAY_MIX = {torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}


class There(torch.Tensor):
    """A tensor of the emulated device. `held` has its numbers, `source` is a view of a table."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held, source=None):
        how = {"dtype": held.dtype, "device": "emu:0", "strides": held.stride()}
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, **how)
        made.held, made.source = held, source
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})

    def tolist(self):
        return self.held.tolist()

    def numpy(self):
        raise TypeError("can't convert an emulated tensor to NumPy; use .cpu()")

    __array__ = numpy

    def __dlpack_device__(self):
        return self._shared().__dlpack_device__()

    def __dlpack__(self, **wishes):
        return self._shared().__dlpack__(**wishes)

    def _shared(self):
        return _core.Tensor.wrap(self.held.detach().contiguous(), "array").to("emu:0")


def run(func, args, kwargs):
    """Runs a function of torch, or one of ours by its code for devices."""
    if func.namespace == "tensorhash":
        return func._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
    require_one_device(func, args, kwargs)
    device = kwargs.get("device")
    if device is not None:
        kwargs = {**kwargs, "device": "cpu"}
    here = pytree.tree_map_only(There, lambda one: one.held, (args, kwargs))
    out = func(*here[0], **here[1])
    if here[0] and out is here[0][0]:  # it wrote to its first argument
        return written(args[0])
    there = device is None or torch.device(device).type == "emu"
    return pytree.tree_map_only(torch.Tensor, There, out) if there else out


def written(tensor):
    """The tensor; what was written to a view of a table goes to the table."""
    if isinstance(tensor, There) and tensor.source is not None:
        _core.assign(tensor.source, _core.Tensor.wrap(tensor.held, "values").to("emu:0"))
    return tensor


def made(function):
    """A kernel for the device of a function that makes tensors."""
    return lambda *given, dtype=None, **_: There(function(*given, dtype=dtype))


def copied(source, target, *_):
    to, of = (one.held if isinstance(one, There) else one for one in (target, source))
    to.copy_(of)
    return target


def require_one_device(func, args, kwargs):
    """torch's rule: one device, except for single numbers, copies, and indices from the CPU."""
    indexes = func._schema.name.partition("::")[2] in INDEXING and isinstance(args[0], There)
    if func in MAY_MIX or indexes:
        return
    for one in pytree.tree_leaves((args, kwargs)):
        if isinstance(one, torch.Tensor) and not isinstance(one, There) and one.ndim:
            raise RuntimeError(f"{func}: expected all tensors on emu:0, got one on {one.device}")


@functools.cache
def install():
    """Adds the device to torch, and to what tables give to it. For the whole process, once."""
    _setup_privateuseone_for_python_backend("emu")
    kernels = {
        "empty.memory_format": made(torch.empty),
        "empty_strided": made(torch.empty_strided),
        "arange": made(torch.arange),
        "_copy_from": copied,
    }
    for name, kernel in kernels.items():
        LIBRARY.impl(name, kernel, "PrivateUse1")
    bridge, on_cpu = framework("torch"), framework("torch")._import

    def take(tensor):
        if isinstance(tensor, _core.Tensor) and tensor.device == "emu:0":
            return There(on_cpu(tensor.cpu().to_dlpack()), tensor)
        return on_cpu(tensor)

    bridge._import = take
