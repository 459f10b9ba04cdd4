"""Tables over several devices: sharded and distributed ones, on emulated devices.

Each program runs in its own process, with the plugins of the C++ tests.
"""

import pytest
from test_devices import (  # noqa: F401
    PRETENDED,
    needs_plugins,
    python_path,
    run_emulated,
)

# ruff: noqa: F811


@needs_plugins
def test_an_integer_names_a_shard_on_a_gpu_if_there_is_one(run_program):
    said = run_program(
        """
        import tensorhash
        try:
            tensorhash.ShardedHashMap(1, "int64", (), "int64", (), devices=[1, 0])
        except RuntimeError as error:
            print(error)
        """,
        PYTHONPATH=python_path(PRETENDED),
        PRETENDED_CUDA_DEVICES="2",
    )
    assert said == 'device: this plugin has no tables on "cuda:1"; use "cpu"\n'


def test_shards_on_devices_give_the_results_of_the_cpu(run_emulated):
    run_emulated("""
        rng = np.random.default_rng(1)
        keys = rng.integers(-50, 50, 200)
        values = rng.normal(size=(200, 3)).astype("float32")
        shape = "int64", (), "float32", (3,)

        def make(*names, policy="mod"):
            return tensorhash.ShardedHashMap(0, *shape, devices=names, policy=policy)

        table, cpu = make("emu:0", "emu:1"), make("cpu:0", "cpu:1")
        assert table.devices == ("emu:0", "emu:1") and not table.is_cpu
        assert "emu:0, emu:1" in repr(table)

        def same(got, want, device):
            for one, other in zip(got, want, strict=True):
                if device is not None:
                    assert one.device == device
                    one = one.cpu()
                np.testing.assert_array_equal(np.asarray(one), other)

        for home in (None, "emu:0", "emu:1"):
            there = (lambda x: x) if home is None else (lambda x: on_device(x, home))
            for verb in ("insert", "accumulate", "insert_or_assign"):
                got = getattr(table, verb)(there(keys), there(values))
                same(got, getattr(cpu, verb)(keys, values), home)
            same([table.erase(there(keys[:9]))], [cpu.erase(keys[:9])], home)
            same(table.find(there(keys)), cpu.find(keys), home)
            same([table.get(there(keys))], [cpu.get(keys)], home)
            same([table.shard_of(there(keys))], [cpu.shard_of(keys)], home)
            table.validate()
        same(table.items(), cpu.items(), None)
        same(table.dump_to_cpu("emu:1"), cpu.dump_to_cpu("cpu:1"), None)
        same(table.dump_to_gpu(1), cpu.dump_to_cpu(1), "emu:1")
        assert table.get_size(0) == cpu.get_size(0)
        assert table.value_tensor(0, "emu:1").device == "emu:1"
        moved = table.cpu()
        assert moved.devices == ("cpu:0", "cpu:1") and moved.cpu() is moved
        same(moved.find(keys), cpu.find(keys), None)
        again = cpu.to(["emu:1", "emu:0"])
        same(again.find(keys), cpu.find(keys), None)
        same(again.insert_from_cpu("emu:0", [51, 53], values[:2]), cpu.insert_from_cpu(1, [51, 53], values[:2]), None)
        with pytest.raises(RuntimeError, match=r'take "hash" or "mod", got "<lambda>.*\\.cpu\\(\\)'):
            make("emu:0", "emu:1", policy=lambda keys, shards: keys % shards)
    """)


def test_shards_on_a_device_take_arrays_of_any_producer(run_emulated):
    run_emulated("""
        table = tensorhash.ShardedHashMap(
            4, "int64", (), "float32", (), devices=["emu:0", "emu:1"], policy="hash"
        )
        keys = Producer(on_device(np.arange(5), "emu:1"))
        values = Producer(on_device(np.arange(5, dtype="float32"), "emu:1"))
        indices, added = table.insert(keys, values)
        # The producers made the legacy stream wait, and our work waits for that one.
        assert [stream for stream, _ in keys.asked + values.asked] == [1, 1]
        del keys, values  # the table does not need their memory any more
        assert indices.device == added.device == "emu:1"
        np.testing.assert_array_equal(table.get(np.arange(5)), np.arange(5, dtype="float32"))
    """)


def test_a_distributed_table_takes_arrays_of_a_device(run_emulated):
    pytest.importorskip("torch")
    run_emulated("""
        import torch
        import torch.distributed as dist
        from tensorhash.distributed import DistributedHashMap

        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        rng = np.random.default_rng(2)
        keys = rng.integers(-50, 50, 200)
        values = rng.normal(size=200).astype("float32")
        shape = 0, "int64", (), "float32", ()
        cpu = DistributedHashMap(None, *shape)
        for device in ("cpu", "emu:0"):
            table = DistributedHashMap(None, *shape, device)
            assert table.local.device == ("cpu:0" if device == "cpu" else device)
            cpu.clear()

            def same(got, want):
                for one, other in zip(got, want, strict=True):
                    assert one.device == "emu:1"
                    np.testing.assert_array_equal(np.asarray(one.cpu()), other)

            there, columns = on_device(keys, "emu:1"), on_device(values, "emu:1")
            for verb in ("insert", "accumulate", "insert_or_assign"):
                same(getattr(table, verb)(there, columns), getattr(cpu, verb)(keys, values))
            same([table.erase(on_device(keys[:9], "emu:1"))], [cpu.erase(keys[:9])])
            same(table.find(there), cpu.find(keys))
            same([table.contains(there)], [cpu.contains(keys)])
            same([table.get(there, default=7)], [cpu.get(keys, default=7)])
            same([table.owner(there)], [cpu.owner(keys)])
            same(table.activate(on_device([900], "emu:1")), cpu.activate([900]))
            sgd = tensorhash.optim.SGD(lr=0.5)
            same(table.update(there, columns, sgd), cpu.update(keys, values, sgd))
            table.reserve(500)
            table.validate()
            np.testing.assert_array_equal(table.get(keys), cpu.get(keys))
            assert table.size() == cpu.size()
        dist.destroy_process_group()
    """)


def test_rows_of_a_distributed_table_go_over_the_group_that_sends_from_devices(run_emulated):
    pytest.importorskip("torch")
    run_emulated("""
        import torch
        import torch.distributed as dist
        from tensorhash import _core
        from tensorhash.distributed.exchange import Exchange
        from tensorhash.distributed.messages import Column

        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        second = dist.new_group([0], backend="gloo")
        # Stands in for nccl: the second group sends, and "the device" is the meta-free CPU.
        config = {id(second): "cpu:gloo,cuda:nccl", id(dist.group.WORLD): "cpu:gloo"}
        real = dist.get_backend_config
        dist.get_backend_config = lambda group: config[id(group)]
        one = Exchange(second)
        assert one.sends_from("cpu:0") == "" == Exchange(None).sends_from("cuda:0")
        assert one.sends_from("cuda:0") == ", over nccl"
        assert one._device == torch.device("cuda:0")
        one._device = torch.device("cpu")  # no GPU here: the copies stay where they are
        used = []
        send = dist.all_to_all_single
        dist.all_to_all_single = lambda *args, **how: (used.append(how["group"]), send(*args, **how))[1]
        rows = np.arange(12, dtype=np.uint8).reshape(4, 3)
        column = Column(("uint8", (3,)), rows=_core.Tensor.wrap(rows))
        (back,) = one.rows("send", [column], [4], [4])
        np.testing.assert_array_equal(np.asarray(back), rows)
        assert used == [second]
        dist.destroy_process_group()
    """)
