"""Tensors of `tensorhash.core` on an emulated device: they answer as those on the CPU do.

Each program runs in its own process: a plugin stays loaded. A function over 50 lines is one program.
Over 400 lines: all programs share the set-up of an emulated device.
"""

from __future__ import annotations

import pytest
from test_devices import PRETENDED, needs_plugins, python_path, run_emulated  # noqa: F401

CORE = """
import tensorhash.core as o3c
try:
    o3c.HashSet(1, o3c.int64, (), o3c.Device("emu:0"))
except RuntimeError as error:
    import os
    # The plugin was built without Boost.Context: in CI that is a failure.
    assert "has no tables" in str(error) and "CI" not in os.environ
    raise SystemExit
EMU = o3c.Device("emu:0")
rng = np.random.default_rng(1)

def same(there, here):
    '''`there` is on the device and has the elements of the NumPy array `here`.'''
    assert isinstance(there, o3c.Tensor) and there.device == EMU, type(there)
    assert there.shape == here.shape, (there.shape, here.shape)
    assert str(there.dtype).lower() == here.dtype.name
    np.testing.assert_array_equal(there.cpu().numpy(), here)
"""


@pytest.fixture
def run_core(run_emulated):  # noqa: F811
    return lambda source: run_emulated(CORE + source.replace("\n        ", "\n"))


def test_tensors_are_made_moved_and_printed(run_core):
    run_core("""
        here = o3c.Tensor([[1, 2, 3], [4, 5, 6]], o3c.int32)
        for there in (here.to(EMU), here.to("emu:0"), here.to(device=EMU),
                      o3c.Tensor([[1, 2, 3], [4, 5, 6]], o3c.int32, EMU)):
            same(there, here.numpy())
            assert not there.is_cpu and not there.is_cuda and there.ndim == there.num_dims() == 2
            assert there.num_elements() == 6 and len(there) == 2 and there.strides == (3, 1)
            assert there.is_contiguous()
            lines = repr(there).splitlines()
            assert lines[:2] == ["[[1 2 3],", " [4 5 6]]"]
            assert lines[2].startswith("Tensor[shape={2, 3}, stride={3, 1}, Int32, EMU:0, 0x")
        assert here.to(EMU).to("emu:1").device == o3c.Device("emu:1")
        back = there.cpu()
        assert type(back) is o3c.Tensor and back.is_cpu and back.cpu() is back
        assert there.to(EMU).shape == (2, 3)
        same(here.to(EMU, o3c.float64), here.numpy().astype("float64"))
        same(o3c.Tensor.zeros((2, 2), device=EMU), np.zeros((2, 2), "float32"))
        same(o3c.Tensor.ones((2,), o3c.bool, EMU), np.ones(2, bool))
        same(o3c.Tensor.full((2,), 7, o3c.int64, EMU), np.full(2, 7))
        same(o3c.Tensor.arange(0, 5, 2, device=EMU), np.arange(0, 5, 2))
        assert o3c.Tensor.empty((3, 0), o3c.uint8, EMU).shape == (3, 0)
        assert o3c.Tensor([7], device=EMU).item() == 7 and int(o3c.Tensor(7, device=EMU)) == 7
        assert bool(o3c.Tensor([False], device=EMU)) is False
        with pytest.raises(RuntimeError, match="CUDA needs the package tensorhash-cu13"):
            there.cuda()
        for made in (there.zeros((2,)), type(there).ones((2,)), there.from_numpy(np.ones(2))):
            assert type(made) is o3c.Tensor and made.is_cpu and made.shape == (2,)
        import copy, pickle
        same(copy.deepcopy(there), here.numpy())
        assert pickle.loads(pickle.dumps(there)).is_cpu
    """)


def test_casts_give_the_numbers_of_numpy(run_core):
    run_core("""
        names = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64")
        for source in names:
            if source == "bool":
                numbers = np.array([True, False])
            elif "float" in source:
                numbers = np.array([0.0, -0.0, 0.4, 1.5, 2.5, 99.9, 100.0], source)
            else:
                numbers = np.array([0, 1, 2, 100, 127], source)
                if source.startswith("int"):
                    numbers = np.append(numbers, [-1, -128]).astype(source)
            for target in names:
                wanted = numbers.astype(target)
                same(o3c.Tensor(numbers, device=EMU).to(getattr(o3c, target)), wanted)
                here = _core.cast(_core.Tensor.wrap(numbers), target)
                np.testing.assert_array_equal(np.asarray(here), wanted)
        # Every tie between two halves, and its neighbours in float64.
        halves = np.arange(0, 0x7c00, dtype="uint16").view("float16").astype("float64")
        ties = (halves[1:] + halves[:-1]) / 2
        numbers = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, 1e9)])
        here = _core.cast(_core.Tensor.wrap(numbers), "float16")
        np.testing.assert_array_equal(np.asarray(here), numbers.astype("float16"))
        same(o3c.Tensor(numbers[::40], device=EMU).to(o3c.float16), numbers[::40].astype("float16"))
        # To bfloat16 by way of float32, so some numbers are rounded twice.
        ml_dtypes = pytest.importorskip("ml_dtypes")
        for numbers in (np.array([2.0**40 + 2.0**32 + 1, 1 + 2**-8 + 2**-40, 3e38, -3.5, 0.1]),
                        np.array([2**40 + 2**32 + 1, 2**24 + 2**16 + 1, -7])):
            short = numbers.astype(ml_dtypes.bfloat16)
            same(o3c.Tensor(numbers, device=EMU).to(o3c.bfloat16), short)
            same(o3c.Tensor(short, device=EMU).to(o3c.float64), short.astype("float64"))
        wide = np.array([2**63 + 1025, 2**64 - 1, 3], "uint64")
        for target in ("float32", "float64", "int64"):
            same(o3c.Tensor(wide, device=EMU).to(getattr(o3c, target)), wide.astype(target))
    """)


def test_indices_select_what_they_select_on_the_cpu(run_core):
    run_core("""
        array = rng.integers(-99, 99, (6, 4, 3)).astype("int32")
        there = o3c.Tensor(array, device=EMU)
        mask = np.array([True, False, True, True, False, False])
        two = rng.random((6, 4)) < 0.5
        rows = np.array([5, -1, 0, 0, 3])
        indices = [
            0, -1, slice(1, 5), slice(None, None, -2), (2, 3), (slice(None), 1), (Ellipsis, 2),
            (1, slice(2, 0, -1), 0), None, slice(9, 2), mask, two, rows, np.abs(rows).astype("uint8"),
            rows.astype("int32").reshape(5, 1), [1, 4], [], np.array([], int), (rows, 1),
            (rows, slice(1, 3)), (slice(None), [0, 2]), (Ellipsis, [0, 2, 2]), (mask, Ellipsis, 0),
            (slice(2, 5), [True, False, True, True]), (slice(None), [0, 3, 1], Ellipsis, 1),
            (slice(None), [0, 3, 1], 2), (Ellipsis, [0, 2], slice(None, None, -1)),
            (slice(None), two[0], Ellipsis, 1), (slice(0, 0), slice(None), 2), (),
        ]
        for index in indices:
            wanted = array[slice(None) if index is None else index]
            same(there[index], wanted)
            if isinstance(index, np.ndarray):
                same(there[o3c.Tensor(index)], wanted)
                same(there[o3c.Tensor(index, device=EMU)], wanted)
        # An int behind a slice: NumPy puts the rows first.
        four = array.reshape(2, 3, 4, 3)
        for index in [(slice(None), [2, 0], slice(None), 1), (Ellipsis, [3, 1], 1),
                      (slice(None), slice(None), [3, 1, 0], 1), (slice(None), [2, 0], 1, 1),
                      (slice(None), [True, False, True], slice(1, 3), 1)]:
            same(o3c.Tensor(four, device=EMU)[index], four[index])
        same(o3c.Tensor(array[:, :0], device=EMU)[:, :, 2], array[:, :0, 2])
        same(there[:, 1:2][np.ones((6, 1), bool)], array[:, 1])
        same(there[::2].contiguous(), array[::2])
        same(there[o3c.Tensor(2, device=EMU)], array[2])
        same(there[1:3][np.array([1, 0, 1])], array[1:3][[1, 0, 1]])
        assert [row.cpu().numpy().tolist() for row in there[:, 0]] == array[:, 0].tolist()
        same(there[:, 0].T(), array[:, 0].T)
        same(there[:, 0].T().reshape(-1), array[:, 0].T.reshape(-1))
        same(there.reshape((-1, 3)).flatten(), array.reshape(-1))
        same(there.view(24, 3), array.reshape(24, 3))
        for wrong, sentence in [
            (6, "index: expected -6 to 5 along axis 0, got 6"),
            ([0, 6], "indices: row 1: expected -6 to 5, got 6"),
            ((0, 0, 0, 0), "index: expected at most 3 indices, got 4"),
            ((Ellipsis, rows, Ellipsis), "index: expected at most one ellipsis"),
            (mask[:3], r"index: expected a mask of shape \\(6,\\), got \\(3,\\)"),
            ((rows, rows), "expected at most one array.*with .cpu"),
            ((0, rows), "no int before it"),
            (1.5, "index: expected integers or a mask"),
        ]:
            with pytest.raises(IndexError, match=sentence):
                there[wrong]
        same(there[Producer(on_device(rows))], array[rows])
        same(there[_core.Tensor.wrap(mask)], array[mask])
        with pytest.raises(RuntimeError, match="index: expected memory of the CPU or of emu:0"):
            there[o3c.Tensor(rows, device=o3c.Device("emu:1"))]
        with pytest.raises(ValueError, match="view: a view of shape .* is not possible with"):
            there[:, 0].view(-1)
        with pytest.raises(ValueError, match="shape: expected one with 72 elements, got"):
            there.reshape((-1, 7))
    """)


def test_writes_by_index_change_what_they_change_on_the_cpu(run_core):
    run_core("""
        start = rng.integers(-99, 99, (6, 4, 3)).astype("float32")
        mask = np.array([True, False, True, True, False, False])
        rows = np.array([5, -1, 0, 0, 3])
        for index, value in [
            (0, 1.5), (slice(1, 5), np.arange(3)), (slice(None, None, -2), np.ones((4, 1))),
            ((slice(None), 1), 7), ((Ellipsis, 2), np.arange(4)), (mask, 0), (rows, 3),
            (rows, np.arange(60).reshape(5, 4, 3)), ((rows, 1), np.arange(15).reshape(5, 3)),
            ((slice(None), [0, 2]), np.arange(3)), (rows.reshape(5, 1), 2.0), ([], 1),
            ((slice(1, 3), [3, 3]), np.arange(6).reshape(2, 1, 3)),
        ]:
            array, there = start.copy(), o3c.Tensor(start, device=EMU)
            array[index] = value
            values = [value, o3c.Tensor(np.asarray(value, "float64")),
                      o3c.Tensor(np.asarray(value, "int64"), device=EMU) if value != 1.5
                      else value] if np.ndim(value) == 0 else [value, o3c.Tensor(value, device=EMU)]
            for one in values:
                there[:] = o3c.Tensor(start)
                there[index] = one
                same(there, array)
        # A reshaped view is a view where NumPy's is one.
        for view, shape in [((), (-1, 3)), (slice(None, None, 2), (3, 2, 2, 3)),
                            (slice(None, None, -1), (6, 12)), ((slice(None), 1), (2, 3, 1, 3)),
                            ((slice(None), slice(1, 3)), (6, 6)), ((slice(None), 1), (18,)),
                            ((slice(None), slice(None), 1), (24,)), ((0, 0, 0), (1, 1))]:
            array, there = start.copy(), o3c.Tensor(start, device=EMU)
            array[(*view, Ellipsis) if isinstance(view, tuple) else view].reshape(shape)[0] = 5
            there[view].reshape(shape)[0] = 5
            same(there, array)
        overlapping = o3c.Tensor(start, device=EMU)
        overlapping[1:] = overlapping[:-1]
        same(overlapping[1:], start[:-1])
        given = o3c.Tensor(start, device=EMU)
        given[Producer(on_device([2, 4]))] = Producer(on_device([7, 8, 9]))
        start[[2, 4]] = [7, 8, 9]
        same(given, start)
        with pytest.raises(RuntimeError, match='values: expected memory of "emu:0", where the'):
            given[0] = o3c.Tensor([1, 2, 3], device=o3c.Device("emu:1"))
        before = o3c.Tensor(start, device=EMU)
        for index, value, error in [([0, 9], 1, IndexError), (0, np.ones((9, 9)), ValueError)]:
            with pytest.raises(error):
                before[index] = value
        same(before, start)
        table = o3c.HashMap(8, o3c.int64, (), o3c.float32, (), EMU)
        with pytest.raises(ValueError, match="read-only"):
            table.key_tensor()[0] = 5
    """)


def test_the_host_waits_as_often_as_the_page_on_devices_says(run_core):
    run_core("""
        there = o3c.Tensor(np.arange(12).reshape(6, 2), device=EMU)
        mask = o3c.Tensor([True, False, True, True, False, False], device=EMU)
        rows = o3c.Tensor([4, 0], device=EMU)
        there.cpu()

        def waits(call):
            before = devices.emulated_waits(0)
            call()
            return devices.emulated_waits(0) - before

        assert waits(lambda: there[1:5].T) == waits(lambda: there.to(o3c.float32)) == 0
        assert waits(lambda: there.__setitem__(slice(1, 5), there[2:])) == 0
        assert waits(lambda: there[mask]) == 2
        assert waits(lambda: there[rows]) == 1
        assert waits(lambda: there.__setitem__(rows, there[:2])) == 1
    """)


def test_arithmetic_is_refused_with_the_ways_out(run_core):
    run_core("""
        there, here = o3c.Tensor([1, 2], device=EMU), o3c.Tensor([1, 2])
        sentence = r"on EMU:0, .*torch.from_dlpack\\(t\\).*\\.cpu\\(\\)"
        for call in (lambda: there + 1, lambda: 1 + there, lambda: here + there,
                     lambda: there == here, there.sum, there.sqrt, there.neg, there.abs_,
                     lambda: there.matmul(there), lambda: there.append(here),
                     lambda: o3c.concatenate([there, there]), lambda: there.add_(1),
                     lambda: there.nonzero(), lambda: o3c.maximum(here, there)):
            with pytest.raises(RuntimeError, match=sentence) as raised:
                call()
            assert str(raised.value).count(". ") == 0
        for call in (there.numpy, lambda: np.asarray(there)):
            with pytest.raises(RuntimeError, match="expected a tensor on the CPU, got one on EMU"):
                call()
        assert not hasattr(there, "nothing")
    """)


def test_tensors_are_shared_through_dlpack(run_core):
    run_core("""
        there = o3c.Tensor([[1, 2], [3, 4]], device=EMU)
        assert there.__dlpack_device__() == (12, 0)
        for again in (o3c.Tensor.from_dlpack(there), o3c.Tensor.from_dlpack(there.to_dlpack())):
            same(again, np.array([[1, 2], [3, 4]]))
            again[0] = 9
            same(there, np.array([[9, 9], [3, 4]]))
            there[0] = o3c.Tensor([1, 2])
        assert o3c.Tensor.from_dlpack(there.__dlpack__(dl_device=(1, 0))).is_cpu
        producer = Producer(on_device([1, 2, 3]))
        same(o3c.Tensor.from_dlpack(producer), np.array([1, 2, 3]))
        assert producer.asked[0][0] == 1  # torch refuses 2, the default stream of the thread
    """)


def test_memory_is_freed_after_the_work_of_its_consumer(run_core):
    run_core("""
        import gc
        stream = devices.emulated_make_stream(0)
        for seed in range(30):
            devices.emulated_set_seed(seed)
            there = on_device(np.arange(64))
            read = _core.Tensor.from_dlpack(there, "source", stream)
            del there
            devices.emulated_set_seed(seed)
            copied = read.to("emu:1")
            del read
            gc.collect()
            other = on_device(np.full(64, -1))  # may get the memory
            np.testing.assert_array_equal(np.asarray(copied.cpu()), np.arange(64))
    """)


def test_threads_share_a_tensor_and_its_views(run_core):
    run_core("""
        import threading

        def elsewhere(call):  # in a thread that ends before its work has run
            results = []
            thread = threading.Thread(target=lambda: results.append(call()))
            thread.start()
            thread.join()
            return results[0]

        numbers = np.arange(64)
        for seed in range(30):
            devices.emulated_set_seed(seed)
            there = o3c.Tensor(numbers, device=EMU)
            view = there[32:]
            elsewhere(lambda: view.__setitem__(slice(None), 7))
            elsewhere(lambda: there[:8].__setitem__(slice(None), 9))
            same(there, np.array([9] * 8 + list(range(8, 32)) + [7] * 32))
            there = o3c.Tensor(numbers, device=EMU)
            copied, mine = elsewhere(there.clone), there[:].clone()
            elsewhere(lambda: there.__setitem__(slice(None), 0))
            same(copied, numbers)
            same(mine, numbers)
            copied = elsewhere(lambda: there[::2].clone())
            view = elsewhere(lambda: there[1:])
            view[0] = 3
            del there, view
            other = o3c.Tensor(np.full(64, -1), device=EMU)  # may get the memory
            same(other, np.full(64, -1))
            same(copied, np.zeros(32, int))

            # A view holds the memory of its table.
            table = o3c.HashMap(64, o3c.int64, (), o3c.int64, (), EMU)
            table.insert(o3c.Tensor(numbers), o3c.Tensor(numbers))
            held = [table.value_tensor()]
            _core.synchronize("emu:0")
            del table
            lag = [o3c.Tensor.zeros((1,), device=EMU) for _ in range(8)]
            copied = held[0].clone()
            elsewhere(lambda: (held.clear(), _core.synchronize("emu:0")))
            same(copied, numbers)
    """)


def test_the_example_of_open3d_runs_on_a_device(run_core):
    run_core("""
        device = EMU
        capacity = 10
        hashmap = o3c.HashMap(capacity, key_dtype=o3c.int64, key_element_shape=(1,),
                              value_dtype=o3c.int64, value_element_shape=(1,), device=device)
        hashmap.reserve(capacity)
        keys = o3c.Tensor([[100], [200], [400], [800], [300], [200], [100]],
                          dtype=o3c.int64, device=device)
        vals = o3c.Tensor([[1], [2], [4], [8], [3], [2], [1]], dtype=o3c.int64, device=device)
        buf_indices, masks = hashmap.insert(keys, vals)
        assert "[True True True True True False False]" in str(masks)
        buf_indices = buf_indices[masks].to(o3c.int64)
        same(buf_indices, np.arange(5))
        buf_keys, buf_vals = hashmap.key_tensor(), hashmap.value_tensor()
        same(buf_keys[buf_indices], np.array([[100], [200], [400], [800], [300]]))
        same(buf_vals[buf_indices], np.array([[1], [2], [4], [8], [3]]))
        query_keys = o3c.Tensor([[1000], [100], [300], [200], [100], [0]], dtype=o3c.int64,
                                device=device)
        buf_indices, masks = hashmap.find(query_keys)
        same(query_keys[masks], np.array([[100], [300], [200], [100]]))
        buf_indices = buf_indices[masks].to(o3c.int64)
        same(buf_vals[buf_indices], np.array([[1], [3], [2], [1]]))
        all_buf_indices = hashmap.active_buf_indices().to(o3c.int64)
        same(buf_keys[all_buf_indices], np.array([[100], [200], [400], [800], [300]]))
        same(buf_vals[all_buf_indices], np.array([[1], [2], [4], [8], [3]]))
        erase_keys = o3c.Tensor([[100], [1000], [100]], dtype=o3c.int64, device=device)
        masks = hashmap.erase(erase_keys)
        same(erase_keys[masks], np.array([[100]]))
        activate_keys = o3c.Tensor([[1000], [0]], dtype=o3c.int64, device=device)
        buf_indices, masks = hashmap.activate(activate_keys)
        buf_vals[buf_indices[masks].to(o3c.int64)] = o3c.Tensor([[10], [0]], dtype=o3c.int64,
                                                                device=device)
        same(hashmap.find(activate_keys)[0], buf_indices.cpu().numpy())
        same(buf_vals[hashmap.find(activate_keys)[0]], np.array([[10], [0]]))

        mhashmap = o3c.HashMap(capacity, key_dtype=o3c.int32, key_element_shape=(3,),
                               value_dtypes=(o3c.uint8, o3c.float32),
                               value_element_shapes=((3,), (1,)), device=device)
        assert len(mhashmap.value_tensors()) == 2
        coords = o3c.Tensor([[0, 1, 0], [-1, 2, 3], [3, 4, 1]], dtype=o3c.int32, device=device)
        colors = o3c.Tensor([[0, 255, 0], [255, 255, 0], [255, 0, 0]], dtype=o3c.uint8,
                            device=device)
        weights = o3c.Tensor([[0.9], [0.1], [0.3]], dtype=o3c.float32, device=device)
        mhashmap.insert(coords, (colors, weights))
        query_coords = o3c.Tensor([[0, 1, 0]], dtype=o3c.int32, device=device)
        buf_indices, masks = mhashmap.find(query_coords)
        same(query_coords[masks], np.array([[0, 1, 0]], "int32"))
        buf_indices = buf_indices[masks].to(o3c.int64)
        same(mhashmap.value_tensor(0)[buf_indices], np.array([[0, 255, 0]], "uint8"))
        same(mhashmap.value_tensor(1)[buf_indices], np.array([[0.9]], "float32"))

        hashset = o3c.HashSet(capacity, key_dtype=o3c.int64, key_element_shape=(1,), device=device)
        keys = o3c.Tensor([1, 3, 5, 7, 5, 3, 1], dtype=o3c.int64, device=device).reshape((-1, 1))
        hashset.insert(keys)
        active_buf_indices = hashset.active_buf_indices().to(o3c.int64)
        same(hashset.key_tensor()[active_buf_indices], np.array([[1], [3], [5], [7]]))
    """)


TORCH = """
torch = pytest.importorskip("torch")
from types import SimpleNamespace
from tensorhash._frameworks import framework

stream = devices.emulated_make_stream(0)
asked = []

class OnDevice(torch.Tensor):
    '''A tensor of torch that says it is on a GPU and shares memory of the emulated device.'''

    device = SimpleNamespace(type="emu", index=0)
    requires_grad = False

    def __dlpack_device__(self):
        return (12, 0)

    def __dlpack__(self, *, stream=None, **wishes):
        assert stream not in (0, 2), "torch refuses these"
        asked.append(stream)
        return self.held.__dlpack__(stream=stream, **wishes)

def fake(array):
    made = torch.empty(array.shape, dtype=getattr(torch, array.dtype.name)).as_subclass(OnDevice)
    made.held = on_device(array)
    return made

given = []
def take(tensor):
    '''What torch.from_dlpack does: it names its current stream.'''
    given.append(tensor.device)
    return _core.Tensor.from_dlpack(tensor.__dlpack__(stream=stream, max_version=(1, 0)))
framework("torch")._import = take
"""


def test_torch_tensors_on_a_device_go_in_and_out_without_copies(run_core):
    pytest.importorskip("torch")
    run_core(
        TORCH.replace("\n", "\n        ")
        + """
        table = tensorhash.HashMap(8, "int64", (), "float32", (), device="emu:0")
        keys = np.array([5, 7, 5])
        indices, mask = table.insert(fake(keys), fake(np.float32([1, 2, 3])))
        assert asked == [1, 1] and given == ["emu:0", "emu:0"]
        np.testing.assert_array_equal(np.asarray(indices.cpu()), [0, 1, 0])
        framework("torch")._stream = lambda device: stream
        import contextlib
        torch.cuda.device = lambda device: contextlib.nullcontext()
        np.testing.assert_array_equal(np.asarray(table.find(fake(keys))[0].cpu()), [0, 1, 0])
        assert asked[-1] == stream
        assert o3c.Tensor.from_dlpack(fake(keys)).device == EMU and asked[-1] == stream

        negative = fake(keys)  # with a lazy minus sign, which torch does not export
        negative.is_neg = lambda: True
        negative.resolve_conj = lambda: negative
        negative.resolve_neg = lambda: fake(-keys)
        table.insert(negative, fake(np.float32([4, 4, 4])))
        np.testing.assert_array_equal(table.keys(), [5, 7, -5, -7])
        with pytest.raises(ValueError, match=r"source: .* minus sign; pass source.resolve_neg\\(\\)"):
            o3c.Tensor.from_dlpack(negative)
        """
    )


def test_arrays_of_cupy_go_in_and_out_without_copies(run_core):
    run_core("""
        import sys, types
        asked = []
        cupy = types.ModuleType("cupy")
        class ndarray:
            def __init__(self, held):
                self.held, self.ndim, self.shape = held, len(held.shape), held.shape
                self.dtype = np.dtype(held.dtype)
            def __dlpack_device__(self):
                return self.held.__dlpack_device__()
            def __dlpack__(self, *, stream=None, **wishes):
                asked.append(stream)
                return self.held.__dlpack__(stream=stream, **wishes)
        ndarray.__module__ = "cupy"
        stream = devices.emulated_make_stream(0)
        cupy.ndarray = ndarray
        cupy.cuda = types.SimpleNamespace(
            get_current_stream=lambda: types.SimpleNamespace(ptr=stream))
        cupy.from_dlpack = lambda tensor: ndarray(
            _core.Tensor.from_dlpack(tensor.__dlpack__(stream=stream)))
        sys.modules["cupy"] = cupy
        table = tensorhash.HashSet(8, "int64", (), device="emu:0")
        indices, mask = table.insert(ndarray(on_device([5, 7, 5])))
        assert asked == [stream] and type(indices) is ndarray
        np.testing.assert_array_equal(np.asarray(indices.held.cpu()), [0, 1, 0])
    """)


def test_arrays_of_jax_go_in_and_out_without_copies(run_core):
    run_core("""
        import sys, types
        asked = []
        jax = types.ModuleType("jax")
        class Array:
            def __init__(self, held):
                self.held, self.ndim, self.shape = held, len(held.shape), held.shape
                self.dtype = np.dtype(held.dtype)
            def __dlpack_device__(self):
                return self.held.__dlpack_device__()
            def __dlpack__(self, *, stream=None, **wishes):
                asked.append(stream)
                return self.held.__dlpack__(stream=stream, **wishes)
        Array.__module__ = "jax"
        stream = devices.emulated_make_stream(0)
        jax.Array = Array
        jax.core = types.SimpleNamespace(Tracer=type("Tracer", (), {}))
        jax.config = types.SimpleNamespace(jax_enable_x64=False)
        # JAX imports an array for a stream of its own.
        jax.dlpack = types.SimpleNamespace(from_dlpack=lambda tensor: Array(
            _core.Tensor.from_dlpack(tensor.__dlpack__(stream=stream))))
        sys.modules["jax"] = jax
        table = tensorhash.HashMap(8, "int32", (), "float32", (), device="emu:0")
        keys, values = np.int32([5, 7, 5]), np.float32([1, 2, 3])
        indices, mask = table.insert(Array(on_device(keys)), Array(on_device(values)))
        # The legacy stream: JAX makes it wait, and our work waits for it.
        assert asked == [1, 1] and type(indices) is type(mask) is Array
        np.testing.assert_array_equal(np.asarray(indices.held.cpu()), [0, 1, 0])
        got = table.get(Array(on_device(keys)))
        assert got.held.device == "emu:0"
        np.testing.assert_array_equal(np.asarray(got.held.cpu()), [1, 2, 1])
    """)


@needs_plugins
def test_the_functions_of_core_cuda_ask_the_plugin(run_program):
    run_program(
        """
        import ctypes
        import tensorhash.core as o3c
        assert o3c.cuda.device_count() == 2 and o3c.cuda.is_available()
        assert o3c.cuda.get_available_devices() == [o3c.Device("CUDA:0"), o3c.Device("CUDA:1")]
        o3c.cuda.synchronize()
        o3c.cuda.synchronize(o3c.Device("CUDA:1"))
        o3c.cuda.synchronize("cuda:1")
        o3c.cuda.synchronize("cpu")
        o3c.cuda.release_cache()
        path = next(line.split()[-1] for line in open("/proc/self/maps") if "_cuda.so" in line)
        assert ctypes.CDLL(path).pretended_releases() == 2
        """,
        PYTHONPATH=python_path(PRETENDED),
        PRETENDED_CUDA_DEVICES="2",
    )
