"""What devices cannot do in this version is refused, each time with one sentence that names .cpu()."""

from test_devices import run_emulated  # noqa: F401  (a fixture)


def test_each_refusal_is_one_sentence_with_the_way_to_the_cpu(run_emulated):  # noqa: F811
    run_emulated("""
        from tensorhash import coords, core, data, geometry

        points = np.random.default_rng(1).normal(size=(9, 3)).astype("float32")
        there = on_device(points)
        ids = on_device(np.arange(4))
        grid = geometry.VoxelBlockGrid(("tsdf",), ("float32",), (1,), 0.1, 16, 10)
        number = ("int64", ())
        two = ["emu:0", "emu:1"]
        held = core.Tensor([1, 2], device="EMU:0")
        calls = {
            "bounded tables are on the CPU only":
                lambda: tensorhash.BoundedHashMap(1, *number, *number, device="emu:0"),
            "devices: bounded tables are on the CPU only":
                lambda: tensorhash.ShardedBoundedHashMap(1, *number, *number, devices=two),
            'policy: shards on "emu:0" take "hash" or "mod"':
                lambda: tensorhash.ShardedHashMap(
                    1, *number, *number, devices=two, policy=lambda keys, shards: keys % shards),
            "points: expected memory of the CPU": lambda: coords.knn_search(there, there, 2),
            "queries: expected memory of the CPU": lambda: coords.knn_search(points, there, 2),
            "device: expected the CPU, where a VoxelBlockGrid computes":
                lambda: geometry.VoxelBlockGrid(
                    ("tsdf",), ("float32",), (1,), 0.1, 16, 10, device="emu:0"),
            "device: expected the CPU, where a VoxelBlockGrid computes, ": lambda: grid.to("emu:0"),
            "points: expected memory of the CPU, ":
                lambda: grid.compute_unique_block_coordinates(there),
            "points: expected memory of the CPU, got": lambda: geometry.NeighborIndex(there),
            "use torch.from_dlpack(t) there, or copy it with .cpu()": lambda: held + 1,
            "numpy: expected a tensor on the CPU": held.numpy,
            "keys: expected memory of the CPU, where this call runs": lambda: data.group_by(ids),
            "elements: expected memory of the CPU, where this call runs": lambda: data.isin(ids, [1]),
        }
        for start, call in calls.items():
            try:
                call()
            except RuntimeError as error:
                said = str(error)
            else:
                raise AssertionError(f"not refused: {start}")
            assert start in said and ".cpu()" in said and ". " not in said, said
    """)
