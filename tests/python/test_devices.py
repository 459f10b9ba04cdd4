"""Devices from plugins: what is said if there are none, and arrays on an emulated device.

The plugins are those of the C++ tests: emulated devices, and one that pretends to be CUDA's.

Over 400 lines: all tests share the plugins and the processes that load them.
"""

import os
from pathlib import Path

import pytest

import tensorhash

BUILD = Path(os.environ.get("TENSORHASH_TEST_BUILD", Path(__file__).parents[2] / "build/release"))
EMULATED = BUILD / "tests" / "plugins" / "libtensorhash_emulated.so"
PRETENDED = BUILD / "tests" / "pretended"
# The real plugin, which `make test-cuda` builds. It loads without a driver.
CUDA = BUILD / "cuda"

no_plugins = not EMULATED.exists() and "CI" not in os.environ
needs_plugins = pytest.mark.skipif(no_plugins, reason="tools/build release makes the plugins")

ASK = """
import tensorhash
for call in (lambda: tensorhash.HashSet(1, "int64", (), device="{device}"),
             lambda: tensorhash.core.Tensor([1], device="{device}"),
             lambda: tensorhash.HashSet(1, "int64", ()).to("{device}")):
    try:
        call()
    except RuntimeError as error:
        print(error)
tensorhash.show_config()
print(tensorhash.core.Device("{device}").is_available())
"""


def three_times(said: str, sentence: str) -> bool:
    return said.splitlines()[:3] == [sentence] * 3


def test_without_the_package_the_error_and_show_config_name_it(run_program):
    said = run_program(ASK.format(device="cuda:0"))
    assert three_times(
        said,
        'device: CUDA needs the package tensorhash-cu13, which is not installed, got "cuda:0"; install it or use '
        '"cpu"',
    )
    assert (
        "devices      cpu:0\ncuda         CUDA needs the package tensorhash-cu13, which is not installed\n"
        "integer ids  i is cpu:i\n" in said
    )
    assert said.endswith("False\n")


@needs_plugins
def test_with_the_package_but_no_driver_the_error_and_show_config_say_so(run_program):
    said = run_program(ASK.format(device="cuda:0"), PYTHONPATH=python_path(PRETENDED))
    reason = "tensorhash-cu13 is installed, but there is no CUDA driver (error 35)"
    assert three_times(said, f'device: {reason}, got "cuda:0"; use "cpu"')
    assert f"devices      cpu:0\ncuda         {reason}\n" in said
    assert said.endswith("False\n")


@pytest.mark.skipif(
    not (CUDA / "tensorhash_cuda").exists() and "CI" not in os.environ,
    reason="tools/build-cuda makes the plugin",
)
def test_the_real_plugin_loads_and_says_that_there_is_no_driver(run_program):
    said = run_program(
        ASK.format(device="cuda:0"),
        """
        from tensorhash.core import cuda
        cuda.synchronize()
        cuda.release_cache()
        print(cuda.is_available(), cuda.device_count(), cuda.get_available_devices())
        """,
        PYTHONPATH=python_path(CUDA),
    )
    if 'cuda         "cuda:0"' in said:
        pytest.skip("this machine has a GPU")
    reason = "tensorhash-cu13 is installed, but there is no CUDA driver (error 35)"
    assert three_times(said, f'device: {reason}, got "cuda:0"; use "cpu"')
    assert f"devices      cpu:0\ncuda         {reason}\n" in said
    assert said.endswith("False\nFalse 0 []\n")


@needs_plugins
def test_with_a_driver_the_error_names_the_devices_that_are_there(run_program):
    said = run_program(
        ASK.format(device="cuda:7"),
        """
        from tensorhash.core import cuda
        cuda.synchronize()
        print(cuda.is_available(), [device.get_id() for device in cuda.get_available_devices()])
        """,
        PYTHONPATH=python_path(PRETENDED),
        PRETENDED_CUDA_DEVICES="2",
    )
    assert three_times(
        said,
        'device: expected "cuda:0" to "cuda:1", got "cuda:7": there is no such device',
    )
    assert said.endswith("True [0, 1]\n")
    assert 'devices      cpu:0, cuda:0, cuda:1\ncuda         "cuda:0" to "cuda:1"\n' in said
    assert "integer ids  i is cuda:i\n" in said


@needs_plugins
def test_a_plugin_of_another_version_is_not_used(run_program):
    said = run_program(
        ASK.format(device="cuda:0"),
        PYTHONPATH=python_path(PRETENDED),
        PRETENDED_CUDA_DEVICES="2",
        PRETENDED_CUDA_VERSION="0.0.1",
    )
    assert "was built for another version of tensorhash, this is " in said
    assert "install the same version of both" in said
    assert "devices      cpu:0\n" in said


@pytest.mark.parametrize("content", [None, b"not a library"])
def test_a_plugin_that_does_not_load_is_named(run_program, tmp_path, content):
    plugin = tmp_path / "libtensorhash_cuda.so"
    if content is not None:
        plugin.write_bytes(content)
    said = run_program(ASK.format(device="cuda:0"), TENSORHASH_PLUGINS=str(plugin))
    assert said.startswith(f"device: the plugin {plugin} does not load: ")


def test_an_emulated_device_has_no_name_without_its_plugin():
    for name in ("emu:0", "EMU:0"):
        with pytest.raises(ValueError, match="expected 'cpu', 'cpu:0' or 'cuda:0', got"):
            tensorhash.core.Device(name)
    with pytest.raises(ValueError, match="device: expected"):
        tensorhash.HashSet(1, "int64", (), device="emu:0")


def python_path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(folder)]))


# Arrays on an emulated device. Each program runs in its own process: a plugin stays loaded.

WITH_EMULATED = f"""
import ctypes
import numpy as np
import pytest
import tensorhash
from tensorhash import _core

devices = ctypes.CDLL({str(EMULATED)!r}, mode=ctypes.DEFAULT_MODE)
devices.emulated_make_stream.restype = ctypes.c_size_t

class Producer:
    '''An array of another framework on a device: notes what the consumer asks for.'''

    def __init__(self, tensor, device=None, max_version=True):
        self.tensor, self.numbers, self.asked = tensor, device, []
        self.knows_versions = max_version

    def __dlpack_device__(self):
        return self.numbers or self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **wishes):
        if wishes and not self.knows_versions:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append((stream, wishes))
        return self.tensor.__dlpack__(stream=stream, **wishes)

def on_device(numbers, device="emu:0"):
    return _core.Tensor.wrap(np.asarray(numbers)).to(device)
"""


@pytest.fixture
def run_emulated(run_program):
    if no_plugins:
        pytest.skip("tools/build release makes the plugins")
    return lambda source: run_program(WITH_EMULATED, source, TENSORHASH_PLUGINS=str(EMULATED))


def test_emulated_devices_have_names(run_emulated):
    run_emulated("""
        device = tensorhash.core.Device("emu:1")
        assert str(device) == "EMU:1" and device.is_available()
        assert not device.is_cpu() and not device.is_cuda()
        assert not tensorhash.core.Device("emu:2").is_available()
        with pytest.raises(RuntimeError, match='expected "emu:0" to "emu:1", got "emu:2"'):
            tensorhash.HashSet(1, "int64", (), device="emu:2")
        with pytest.raises(RuntimeError, match="bounded tables are on the CPU only, got"):
            tensorhash.BoundedHashMap(1, "int64", (), "int64", (), device="emu:0")
        with pytest.raises(RuntimeError, match="bounded tables are on the CPU only, got"):
            tensorhash.ShardedBoundedHashMap(1, "int64", (), "int64", (), devices=["emu:0"])
    """)


def test_tensors_go_to_a_device_and_back(run_emulated):
    run_emulated("""
        numbers = np.arange(12, dtype="int32").reshape(3, 4)
        there = on_device(numbers[:, ::2])
        assert there.device == "emu:0" and there.shape == (3, 2)
        assert there.__dlpack_device__() == (12, 0)
        for back in (there.cpu(), there.to("cpu"), there.to("emu:1").cpu()):
            assert back.device == "cpu:0"
            np.testing.assert_array_equal(np.asarray(back), numbers[:, ::2])
        assert there.to("emu:0").device == "emu:0"
        before = devices.emulated_pending(0)
        last = on_device([1])
        assert devices.emulated_pending(0) > before
        _core.synchronize("emu:0")
        assert devices.emulated_pending(0) == 0
    """)


def test_host_access_to_device_memory_is_refused(run_emulated):
    run_emulated("""
        there = on_device([1, 2, 3])
        sentence = 'array: NumPy needs memory of the CPU, got memory of "emu:0"; copy it with .cpu'
        for use in (np.asarray, np.array, lambda x: np.add(x, 1)):
            with pytest.raises(RuntimeError, match=sentence):
                use(there)
        with pytest.raises(BufferError, match="not on the CPU"):
            memoryview(there)
        table = tensorhash.HashSet(1, "int64", ())
        for keys in (there, Producer(there)):
            with pytest.raises(RuntimeError, match="keys: expected memory of the CPU, got memory"):
                _core.HashMap(1, ("int64", ()), [], "cpu:0", None).find(keys)
        with pytest.raises(BufferError, match="expected the CPU"):
            there.__dlpack__(dl_device=(2, 0))
        with pytest.raises(BufferError, match="copy: expected None or True"):
            there.__dlpack__(dl_device=(1, 0), copy=False)
        np.testing.assert_array_equal(
            np.asarray(_core.Tensor.from_dlpack(there.__dlpack__(dl_device=(1, 0)))), [1, 2, 3])
    """)


def test_a_producer_gets_our_stream_and_its_version(run_emulated):
    run_emulated("""
        for versions in (True, False):
            producer = Producer(on_device([5, 6]), max_version=versions)
            tensor = _core.Tensor.from_dlpack(producer)
            assert tensor.device == "emu:0"
            wishes = {"max_version": (1, 0)} if versions else {}
            # 1, the legacy stream: torch refuses 2, the default stream of the thread.
            assert producer.asked == [(1, wishes)]
            np.testing.assert_array_equal(np.asarray(tensor.cpu()), [5, 6])
        host = Producer(_core.Tensor.wrap(np.arange(3)))
        _core.Tensor.from_dlpack(host)
        assert host.asked == [(None, {"max_version": (1, 0)})]
        for device in [(12, 2), (12, -1), (2, 0), (9, 0)]:
            with pytest.raises(RuntimeError, match="expected an array on the CPU, got one on"):
                _core.Tensor.from_dlpack(Producer(on_device([5]), device))
    """)


def test_a_consumer_waits_unless_it_says_not_to(run_emulated):
    run_emulated("""
        stream = devices.emulated_make_stream(0)
        for seed in range(20):
            devices.emulated_set_seed(seed)
            for wait_on in (None, 1, 2, stream):
                there = on_device(np.arange(100))
                before = devices.emulated_pending(0)
                capsule = there.__dlpack__(stream=wait_on, max_version=(1, 0))
                # Our own stream, 2, needs no wait.
                assert (devices.emulated_pending(0) > before) == (wait_on != 2)
                again = _core.Tensor.from_dlpack(capsule)  # reads on the stream of the thread
                np.testing.assert_array_equal(np.asarray(again.cpu()), np.arange(100))
        there = on_device([1])
        before = devices.emulated_pending(0)
        there.__dlpack__(stream=-1)
        assert devices.emulated_pending(0) == before
        for bad in (0, -2):
            with pytest.raises(BufferError, match=f"stream: expected None, -1 .*, got {bad}"):
                there.__dlpack__(stream=bad)
        with pytest.raises(BufferError, match="stream: expected None for memory on the CPU"):
            there.cpu().__dlpack__(stream=1)
    """)


def test_memory_lives_as_long_as_its_last_user(run_emulated):
    run_emulated("""
        import gc
        there = on_device(np.arange(10))
        there.cpu()
        assert devices.emulated_live(0) == 1
        producer = Producer(there)
        again = _core.Tensor.from_dlpack(producer)
        unused = again.__dlpack__()
        del there, producer, again
        gc.collect()
        on_device([1]).cpu()
        assert devices.emulated_live(0) == 1 + 1  # the capsule's, and that of the line above
        del unused
        on_device([1], "emu:1").cpu()
        other = on_device([2])
        other.cpu()
        assert devices.emulated_live(0) == 1
    """)


def test_after_an_asynchronous_error_the_device_is_refused(run_emulated):
    run_emulated("""
        there = on_device([1, 2])
        devices.emulated_fail(0)
        legacy = there.__dlpack__(stream=1)
        sentence = "an earlier call on emu:0 failed: a planted failure"
        waits = _core.Tensor.from_dlpack(legacy)  # written by the legacy stream
        with pytest.raises(RuntimeError, match=sentence):
            waits.cpu()
        for call in (there.cpu, lambda: on_device([3]),
                     lambda: tensorhash.HashSet(1, "int64", (), device="emu:0")):
            with pytest.raises(RuntimeError, match=sentence):
                call()
        np.testing.assert_array_equal(np.asarray(on_device([3], "emu:1").cpu()), [3])
    """)


def test_a_forked_child_is_refused(run_emulated):
    run_emulated("""
        import os
        there = on_device([1, 2])
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (there.cpu, lambda: on_device([3]),
                         lambda: tensorhash.HashSet(1, "int64", (), device="emu:0")):
                try:
                    call()
                except RuntimeError as error:
                    refused += "was forked from" in str(error)
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        np.testing.assert_array_equal(np.asarray(there.cpu()), [1, 2])
    """)


TABLE = """
try:
    table = tensorhash.HashMap(4, "int64", (), "float32", (2,), device="emu:0")
except RuntimeError as error:
    import os
    # The plugin was built without Boost.Context: in CI that is a failure.
    assert "has no tables" in str(error) and "CI" not in os.environ
    raise SystemExit
keys = np.int64([5, 7, 5, 9])
values = np.arange(8, dtype="float32").reshape(4, 2)
"""


def test_a_table_on_a_device_answers_where_the_keys_came_from(run_program):
    if no_plugins:
        pytest.skip("tools/build release makes the plugins")
    run_program(
        WITH_EMULATED,
        TABLE,
        """
        assert table.device == "emu:0" and not table.is_cpu and not table.is_cuda
        indices, mask = table.insert(keys, values)
        np.testing.assert_array_equal(indices, [0, 1, 0, 2])
        np.testing.assert_array_equal(mask, [True, True, False, True])
        there = table._table.find(Producer(on_device(keys)))
        assert [result.device for result in there] == ["emu:0", "emu:0"]
        np.testing.assert_array_equal(np.asarray(there[0].cpu()), indices)
        np.testing.assert_array_equal(table.get(keys), values[[0, 1, 0, 3]])
        np.testing.assert_array_equal(table.erase(keys[:1]), [True])
        assert len(table) == 2 and table.to("emu:0") is table
        with pytest.raises(RuntimeError, match='keys: expected memory of the CPU or of "emu:0"'):
            table._table.find(on_device(keys, "emu:1"))
        there = table.to("emu:1").cpu()
        assert there.device == "cpu:0" and there.is_cpu
        np.testing.assert_array_equal(there.keys(), [7, 9])
        np.testing.assert_array_equal(there.active_buf_indices(), [1, 2])
        """,
        TENSORHASH_PLUGINS=str(EMULATED),
    )


def test_from_items_and_unique_run_where_their_arrays_are_unless_device_is_given(run_program):
    if no_plugins:
        pytest.skip("tools/build release makes the plugins")
    run_program(
        WITH_EMULATED,
        TABLE,
        """
        here = tensorhash.HashMap.from_items(keys, values)
        distinct, inverse = tensorhash.unique(keys, return_inverse=True)
        there, other = on_device(keys), on_device(values)
        for made in (tensorhash.HashMap.from_items(there, other),
                     tensorhash.HashMap.from_items(there, values),
                     tensorhash.HashMap.from_items(keys, other),
                     tensorhash.HashMap.from_items(keys, values, device="emu:0"),
                     tensorhash.HashMap.from_items(there, [other, keys], device="emu:0")):
            assert made.device == "emu:0" and len(made) == 3
            found = made.get(keys)
            found = found[0] if isinstance(found, tuple) else found
            np.testing.assert_array_equal(found, here.get(keys))
        got = tensorhash.unique(there, return_inverse=True)
        assert [one.device for one in got] == ["emu:0", "emu:0"]
        got = [*map(lambda one: np.asarray(one.cpu()), got),
               *tensorhash.unique(keys, return_inverse=True, device="emu:0")]
        for one, wanted in zip(got, [distinct, inverse, distinct, inverse], strict=True):
            np.testing.assert_array_equal(one, wanted)
        sentence = "expected memory of the CPU or of .emu:1., where this call runs, got memory of"
        for call in (lambda: tensorhash.unique(there, device="emu:1"),
                     lambda: tensorhash.HashMap.from_items(there, other, device="emu:1"),
                     lambda: tensorhash.HashMap.from_items(on_device(keys, "emu:1"), other)):
            with pytest.raises(RuntimeError, match=sentence + r".*copy it with \\.cpu"):
                call()
        with pytest.raises(RuntimeError, match="array: expected memory of the CPU, where this"):
            tensorhash.unique(there, device="cpu")
        """,
        TENSORHASH_PLUGINS=str(EMULATED),
    )


def test_a_table_is_refused_after_an_error_and_in_a_forked_child(run_program):
    if no_plugins:
        pytest.skip("tools/build release makes the plugins")
    run_program(
        WITH_EMULATED,
        TABLE,
        """
        import os, pickle, tempfile
        table.insert(keys, values)
        folder = tempfile.mkdtemp()
        calls = (lambda: table.find(keys), lambda: table.insert(keys, values), lambda: len(table),
                 table.cpu, table.clone, table.clear, lambda: pickle.dumps(table),
                 lambda: table.save(os.path.join(folder, "table")))
        child = os.fork()
        if child == 0:
            refused = 0
            for call in calls:
                try:
                    call()
                except RuntimeError as error:
                    refused += "was forked from" in str(error)
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
        assert len(table) == 3
        devices.emulated_fail(0)
        waits = _core.Tensor.from_dlpack(on_device([1]).__dlpack__(stream=1))
        with pytest.raises(RuntimeError, match="a planted failure"):
            waits.cpu()
        for call in calls:
            with pytest.raises(RuntimeError, match="an earlier call on emu:0 failed"):
                call()
        assert os.listdir(folder) == []
        """,
        TENSORHASH_PLUGINS=str(EMULATED),
    )
