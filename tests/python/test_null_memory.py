"""Arrays without memory: freed storage, fake and functional tensors, odd DLPack objects."""

import pathlib

import numpy as np
import pytest

import tensorhash

torch = pytest.importorskip("torch")

# Each program runs in its own process, because reading a null pointer would end it.
SETUP = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import warnings; warnings.simplefilter("ignore")
import numpy as np, torch, tensorhash as th
from array_calls import CALLS

def refused(name, call, array, words):
    argument = call.argument.replace("\\\\", "")
    try:
        call.run(array)
    except ValueError as error:
        assert str(error).startswith(argument + ":"), (name, error)
        assert any(word in str(error) for word in words), (name, error)
    else:
        raise SystemExit(f"{{name}}: nothing was raised")
"""


def test_a_tensor_with_freed_storage_is_a_value_error_everywhere(run_program):
    run_program(
        SETUP,
        """
        for name, call in CALLS.items():
            for left in (0, 8):
                tensor = torch.from_numpy(call.array).clone()
                tensor.untyped_storage().resize_(left)
                refused(name, call, tensor, ["freed"])
        """,
    )


def test_a_tensor_with_freed_storage_is_a_value_error_in_tensorhash_torch(run_program):
    run_program(
        SETUP,
        """
        from array_calls import torch_calls
        for name, call in torch_calls().items():
            call.run(torch.from_numpy(call.array))
            for autocast in (False, True):
                for left in (0, 4):
                    tensor = torch.from_numpy(call.array).clone()
                    tensor.untyped_storage().resize_(left)
                    with torch.autocast("cpu", enabled=autocast):
                        refused(name, call, tensor, ["freed"])
        """,
    )


def test_tracing_tensors_of_torch_have_no_memory_to_check():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from tensorhash.torch._checks import require_memory

    def check(features):
        require_memory(features, "features")
        return features.sum()

    ones = torch.ones(3, 2)
    for transform in (torch.func.grad, torch.func.vmap, torch.func.functionalize, make_fx):
        transform(check)(ones)
    make_fx(check, tracing_mode="symbolic")(ones)
    check(FakeTensorMode().from_tensor(ones))
    check(ones.to("meta"))


def test_a_view_of_a_storage_that_shrank_is_a_value_error():
    whole = torch.arange(100)
    table = tensorhash.HashSet(4, "int64", ())
    views = [whole[50:], whole[::3], whole.view(10, 10)[:, 0], whole[40:41].expand(9)]
    for view in views:
        table.insert(view)
    size = table.size()
    whole.untyped_storage().resize_(300)
    for view in views:
        with pytest.raises(ValueError, match="keys: expected a storage of at least .* got 300"):
            table.insert(view)
    table.find(whole[:37])  # this part is still there
    assert table.size() == size


def test_a_fake_tensor_is_a_value_error_everywhere(run_program):
    run_program(
        SETUP,
        """
        from torch._subclasses.fake_tensor import FakeTensorMode
        for name, call in CALLS.items():
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                fake = mode.from_tensor(torch.from_numpy(call.array).clone())
            refused(name, call, fake, ["null pointer", "refused to share"])
        """,
    )


def test_a_tensor_under_functionalize_is_a_value_error_everywhere(run_program):
    run_program(
        SETUP,
        """
        for name, call in CALLS.items():
            def inside(tensor):
                refused(name, call, tensor, ["null pointer", "refused to share", "freed"])
                return tensor
            torch.func.functionalize(inside)(torch.from_numpy(call.array).clone())
        """,
    )


def test_tensors_of_vmap_and_grad_are_refused_by_name():
    def insert(keys):
        with pytest.raises((ValueError, TypeError), match="^keys: "):
            tensorhash.HashSet(4, "float64", ()).insert(keys)
        return keys.sum()

    torch.func.vmap(insert)(torch.ones(3, 2, dtype=torch.float64))
    torch.func.grad(insert)(torch.ones(3, dtype=torch.float64))


def test_null_memory_from_other_frameworks_is_a_value_error(run_program):
    run_program(
        SETUP,
        """
        class Null:
            def __init__(self, array):
                self.tensor = torch.from_numpy(array).clone()
                self.tensor.untyped_storage().resize_(0)
            def __dlpack__(self, **options):
                return self.tensor.__dlpack__()
            def __dlpack_device__(self):
                return (1, 0)
        for name, call in CALLS.items():
            refused(name, call, Null(call.array), ["null pointer"])
        # Without elements there is nothing to read, so null is fine.
        empty = torch.zeros(0, dtype=torch.int64)
        assert th.HashSet(4, "int64", ()).insert(empty)[0].shape == (0,)
        assert len(th.unique(Null(np.zeros((0, 3), np.int64)))) == 0
        """,
    )


class Odd:
    """An array with an unusual device."""

    def __init__(self, device):
        self._device = device

    def __dlpack__(self, **options):
        return np.arange(3).__dlpack__(**options)

    def __dlpack_device__(self):
        if isinstance(self._device, Exception):
            raise self._device
        return self._device


@pytest.mark.parametrize(
    "device",
    [None, 5, (), (1,), (1, 0, 0), ("cpu", 0), (1.0, 0), (2**70, 0), {1: 0}, "cp", object()],
)
def test_an_odd_device_is_a_type_error_that_shows_it(device):
    with pytest.raises(
        TypeError, match="keys: expected __dlpack_device__.. to return two integers"
    ):
        tensorhash.HashSet(4, "int64", ()).insert(Odd(device))


def test_other_spellings_of_devices_are_understood():
    assert tensorhash.unique(Odd([1, 0])).tolist() == [0, 1, 2]
    assert tensorhash.unique(Odd((np.int32(1), 0))).tolist() == [0, 1, 2]
    with pytest.raises(
        RuntimeError, match="array: expected an array on the CPU, got one on .2, 7."
    ):
        tensorhash.unique(Odd((2, 7)))
    with pytest.raises(ValueError, match="array: its owner refused to name its device: lost"):
        tensorhash.unique(Odd(OSError("lost")))


def test_quantized_nested_and_sparse_tensors_say_what_to_pass():
    table = tensorhash.HashSet(4, "float32", ())
    quantized = torch.quantize_per_tensor(torch.tensor([1.0, 2.0, 1.0]), 0.5, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"keys: .*quantized one; pass keys\.dequantize\(\)"):
        table.insert(quantized)
    assert table.insert(quantized.dequantize())[0].tolist() == [0, 1, 0]
    parts = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor(parts, layout=layout)
        with pytest.raises(
            TypeError, match=r"keys: .*nested one; pass torch\.cat\(keys\.unbind\(\)\)"
        ):
            table.insert(nested)
        assert table.insert(torch.cat(nested.unbind()))[0].tolist() == [0, 1, 2]
    with pytest.raises(
        TypeError, match=r"keys: .*layout torch.sparse_coo; pass keys\.to_dense\(\)"
    ):
        table.insert(torch.eye(2).to_sparse())
