"""Sparse convolution as operators of torch: `torch.ops.tensorhash.sparse_conv` and its gradients.

Each is bilinear, and the gradients of each are the other two, so there are gradients of any order.
The map is three tensors, so that torch can compile and export a call. On the CPU the core computes;
on other devices torch multiplies the gathered rows of each offset.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from tensorhash import _core
from tensorhash._frameworks import framework

Maps = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # in_maps, out_maps, offsets

_MAPS = "Tensor in_maps, Tensor out_maps, Tensor offsets"
_LIBRARY = torch.library.Library("tensorhash", "FRAGMENT")
_LIBRARY.define(
    f"sparse_conv(Tensor features, Tensor weight, {_MAPS}, SymInt num_out, int groups=1) -> Tensor"
)
_LIBRARY.define(
    f"sparse_conv_input_gradient(Tensor gradient, Tensor weight, {_MAPS}, SymInt num_in, "
    "int groups=1) -> Tensor"
)
_LIBRARY.define(
    f"sparse_conv_weight_gradient(Tensor features, Tensor gradient, {_MAPS}, int groups=1)"
    " -> Tensor"
)

_TORCH = framework("torch")
sparse_conv = torch.ops.tensorhash.sparse_conv.default
input_gradient = torch.ops.tensorhash.sparse_conv_input_gradient.default
weight_gradient = torch.ops.tensorhash.sparse_conv_weight_gradient.default


class _Kept:
    """A plan, and what it was made of."""

    def __init__(self, plan: _core.ConvPlan, maps: Maps) -> None:
        self.plan = plan
        self.versions = versions(maps)
        self.others = [weakref.ref(side) for side in maps[:2]]

    def fits(self, maps: Maps, num_in: int, num_out: int) -> bool:
        """Is the plan that of these tensors, unchanged?"""
        return (
            all(kept() is side for kept, side in zip(self.others, maps[:2], strict=True))
            and self.versions == versions(maps)
            and (self.plan.num_in, self.plan.num_out) == (num_in, num_out)
        )


_plans = WeakTensorKeyDictionary()


def versions(maps: Maps) -> list[int]:
    """torch counts the writes to a tensor, but not those to inference tensors."""
    return [-1 if side.is_inference() else side._version for side in maps]


def _plan(maps: Maps, num_in: int, num_out: int) -> _core.ConvPlan:
    """The plan of a map, made on the map's first use. ValueError if its numbers are no map."""
    kept: _Kept | None = _plans.get(maps[2])
    if kept is None or not kept.fits(maps, num_in, num_out):
        ins, outs = _take(maps[0], "in_maps"), _take(maps[1], "out_maps")
        offsets = _take(maps[2], "offsets")
        try:
            kept = _Kept(_core.ConvPlan(ins, outs, offsets, num_in, num_out), maps)
        except ValueError as error:
            raise ValueError(f"kernel_map: {error}") from None
        _plans[maps[2]] = kept
    return kept.plan


def _take(array: torch.Tensor, argument: str) -> Any:
    return _TORCH.take(array.detach(), argument)


def _give(made: _core.Tensor) -> torch.Tensor:
    given: Any = _TORCH.give(made)
    result: torch.Tensor = given
    return result


def _sparse_conv_cpu(
    features: torch.Tensor,
    weight: torch.Tensor,
    in_maps: torch.Tensor,
    out_maps: torch.Tensor,
    offsets: torch.Tensor,
    num_out: int,
    groups: int = 1,
) -> torch.Tensor:
    plan = _plan((in_maps, out_maps, offsets), len(features), num_out)
    return _give(plan.forward(_take(features, "features"), _take(weight, "weight"), groups))


def _input_gradient_cpu(
    gradient: torch.Tensor,
    weight: torch.Tensor,
    in_maps: torch.Tensor,
    out_maps: torch.Tensor,
    offsets: torch.Tensor,
    num_in: int,
    groups: int = 1,
) -> torch.Tensor:
    plan = _plan((in_maps, out_maps, offsets), num_in, len(gradient))
    return _give(plan.input_gradient(_take(gradient, "gradient"), _take(weight, "weight"), groups))


def _weight_gradient_cpu(
    features: torch.Tensor,
    gradient: torch.Tensor,
    in_maps: torch.Tensor,
    out_maps: torch.Tensor,
    offsets: torch.Tensor,
    groups: int = 1,
) -> torch.Tensor:
    plan = _plan((in_maps, out_maps, offsets), len(features), len(gradient))
    taken = _take(features, "features"), _take(gradient, "gradient")
    return _give(plan.weight_gradient(*taken, groups))


def _pairs(*maps: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(in rows, out rows) of each offset, as torch can index with."""
    ins, outs = maps[0].long(), maps[1].long()
    for start, end in itertools.pairwise(maps[2].tolist()):
        yield ins[start:end], outs[start:end]


def _by_group(rows: torch.Tensor, groups: int) -> torch.Tensor:
    """[N, groups * C] as [groups, N, C]."""
    return rows.unflatten(1, (groups, -1)).transpose(0, 1)


def _matrices(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """[K, C, groups * D] as [K, groups, C, D]."""
    return weight.unflatten(2, (groups, -1)).transpose(1, 2)


def _sums(like: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Zeros to add products to: floats for half types, which would round after every offset."""
    wide = like.dtype if like.dtype == torch.float64 else torch.float32
    return like.new_zeros(rows, columns, dtype=wide)


def _add_products(
    out: torch.Tensor, rows: torch.Tensor, taken: torch.Tensor, matrix: torch.Tensor
) -> None:
    """out[rows] += taken @ matrix, by group. A row is in `rows` only once per offset."""
    products = _by_group(taken, matrix.shape[0]) @ matrix
    out.index_add_(0, rows, products.transpose(0, 1).flatten(1).to(out.dtype))


def _sparse_conv_gathered(features: torch.Tensor, weight: torch.Tensor, *rest: Any) -> torch.Tensor:
    *maps, num_out, groups = rest if len(rest) == 5 else (*rest, 1)
    out = _sums(features, num_out, weight.shape[2])
    for matrix, (ins, outs) in zip(_matrices(weight, groups), _pairs(*maps), strict=True):
        _add_products(out, outs, features.index_select(0, ins), matrix)
    return out.to(features.dtype)


def _input_gradient_gathered(
    gradient: torch.Tensor, weight: torch.Tensor, *rest: Any
) -> torch.Tensor:
    *maps, num_in, groups = rest if len(rest) == 5 else (*rest, 1)
    out = _sums(gradient, num_in, weight.shape[1] * groups)
    matrices = _matrices(weight, groups).transpose(2, 3)
    for matrix, (ins, outs) in zip(matrices, _pairs(*maps), strict=True):
        _add_products(out, ins, gradient.index_select(0, outs), matrix)
    return out.to(gradient.dtype)


def _weight_gradient_gathered(
    features: torch.Tensor, gradient: torch.Tensor, *rest: Any
) -> torch.Tensor:
    *maps, groups = rest if len(rest) == 4 else (*rest, 1)
    channels, columns = features.shape[1] // groups, gradient.shape[1]
    out = features.new_empty(len(maps[2]) - 1, channels, columns)
    for k, (ins, outs) in enumerate(_pairs(*maps)):
        left = _by_group(features.index_select(0, ins), groups).transpose(1, 2)
        products = left @ _by_group(gradient.index_select(0, outs), groups)
        out[k] = products.transpose(0, 1).flatten(1)
    return out


def _sparse_conv_shape(features: torch.Tensor, weight: torch.Tensor, *rest: Any) -> torch.Tensor:
    return features.new_empty(rest[3], weight.shape[2])


def _input_gradient_shape(gradient: torch.Tensor, weight: torch.Tensor, *rest: Any) -> torch.Tensor:
    groups = rest[4] if len(rest) == 5 else 1
    return gradient.new_empty(rest[3], weight.shape[1] * groups)


def _weight_gradient_shape(
    features: torch.Tensor, gradient: torch.Tensor, *rest: Any
) -> torch.Tensor:
    groups = rest[3] if len(rest) == 4 else 1
    shape = rest[2].shape[0] - 1, features.shape[1] // groups, gradient.shape[1]
    return features.new_empty(shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keeps the tensors, which all five come first, and the number of groups, which comes last."""
    ctx.save_for_backward(*inputs[:5])
    ctx.groups = inputs[-1]


def _sparse_conv_backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    features, weight, *maps = ctx.saved_tensors
    of_features = of_weight = None
    if ctx.needs_input_grad[0]:
        of_features = call(input_gradient, grad, weight, *maps, features.shape[0], ctx.groups)
    if ctx.needs_input_grad[1]:
        of_weight = call(weight_gradient, features, grad, *maps, ctx.groups)
    return of_features, of_weight, *[None] * 5


def _input_gradient_backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    gradient, weight, *maps = ctx.saved_tensors
    of_gradient = of_weight = None
    if ctx.needs_input_grad[0]:
        of_gradient = call(sparse_conv, grad, weight, *maps, gradient.shape[0], ctx.groups)
    if ctx.needs_input_grad[1]:
        of_weight = call(weight_gradient, grad, gradient, *maps, ctx.groups)
    return of_gradient, of_weight, *[None] * 5


def _weight_gradient_backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    features, gradient, *maps = ctx.saved_tensors
    of_features = of_gradient = None
    if ctx.needs_input_grad[0]:
        of_features = call(input_gradient, gradient, grad, *maps, features.shape[0], ctx.groups)
    if ctx.needs_input_grad[1]:
        of_gradient = call(sparse_conv, features, grad, *maps, gradient.shape[0], ctx.groups)
    return of_features, of_gradient, *[None] * 4


def _function(operator: Any, backward: Callable[..., tuple[Any, ...]]) -> Any:
    """The operator as an autograd.Function, which is what torch.func can take gradients of."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(*arguments: Any) -> torch.Tensor:
            result: torch.Tensor = operator(*arguments)
            return result

        setup_context = staticmethod(_keep)

    Function.backward = staticmethod(backward)
    return Function


_functions: dict[Any, Any] = {}


def call(operator: Any, *arguments: Any) -> torch.Tensor:
    """Calls an operator with gradients, also inside torch.func.grad and its relatives."""
    inside_func = torch._C._are_functorch_transforms_active()
    result: torch.Tensor = (
        _functions[operator].apply(*arguments) if inside_func else operator(*arguments)
    )
    return result


def _casting(operator: Any, device: str) -> Callable[..., torch.Tensor]:
    """The operator under autocast: its two float tensors are cast as those of a convolution."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device.upper()}")

    def cast(array: torch.Tensor) -> torch.Tensor:
        wide = array.dtype == torch.float64 or not array.is_floating_point()
        return array if wide else array.to(torch.get_autocast_dtype(device))

    def cast_both(one: torch.Tensor, other: torch.Tensor, *rest: Any) -> torch.Tensor:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            result: torch.Tensor = operator(cast(one), cast(other), *rest)
            return result

    return cast_both


def _register(
    operator: Any,
    on_cpu: Callable[..., torch.Tensor],
    on_devices: Callable[..., torch.Tensor],
    shape: Callable[..., torch.Tensor],
    backward: Callable[..., tuple[Any, ...]],
) -> None:
    name = operator._schema.name.partition("::")[2]
    _LIBRARY.impl(name, on_cpu, "CPU")
    _LIBRARY.impl(name, on_devices, "CompositeExplicitAutograd")
    for device in ("cpu", "cuda"):
        _LIBRARY.impl(name, _casting(operator, device), f"Autocast{device.upper()}")
    full = f"tensorhash::{name}"
    torch.library.register_fake(full, shape, lib=_LIBRARY)
    torch.library.register_autograd(full, backward, setup_context=_keep, lib=_LIBRARY)
    _functions[operator] = _function(operator, backward)


_register(
    sparse_conv,
    _sparse_conv_cpu,
    _sparse_conv_gathered,
    _sparse_conv_shape,
    _sparse_conv_backward,
)
_register(
    input_gradient,
    _input_gradient_cpu,
    _input_gradient_gathered,
    _input_gradient_shape,
    _input_gradient_backward,
)
_register(
    weight_gradient,
    _weight_gradient_cpu,
    _weight_gradient_gathered,
    _weight_gradient_shape,
    _weight_gradient_backward,
)
