"""The tables of Python packages, where they are installed: dynamicemb and WarpConvNet.

usage: python_peers.py ID NAME ROWS [NAME ROWS...]

Prints the rows that report.py reads. A package that is not installed, or has other calls by now,
gets a row that says so.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
from collections.abc import Callable
from typing import Any

ROUNDS = 7


def measured(torch: Any, prepare: Callable[[], None], work: Callable[[], Any]) -> float:
    """The median microseconds of a call, after one to warm up."""
    times = []
    for _ in range(1 + ROUNDS):
        prepare()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[1:])


def row(contender: str, table: str, operation: str, rows: int, microseconds: float) -> None:
    print("time", contender, table, operation, rows, microseconds, sep="\t", flush=True)


def nothing() -> None:
    pass


def voxels(torch: Any, rows: int, batch: int, device: str) -> Any:
    """int32 [rows, 4], distinct, in random order."""
    generator = torch.Generator(device=device).manual_seed(batch)
    numbers = torch.randperm(rows, device=device, generator=generator)
    axes = (numbers % 512, numbers // 512 % 512, numbers // 512**2)
    columns = (torch.full_like(numbers, batch), *axes)
    return torch.stack(columns, dim=1).to(torch.int32).contiguous()


def warpconvnet(torch: Any, device: str, name: str, rows: int) -> None:
    """WarpConvNet's PackedHashTable and ours."""
    from warpconvnet.geometry.coords.search.packed_hashmap import PackedHashTable as Theirs

    from tensorhash.coords import PackedHashTable as Ours

    present, absent = (voxels(torch, rows, batch, device) for batch in (0, 1))
    for contender, kind in (("WarpConvNet PackedHashTable", Theirs), ("tensorhash", Ours)):
        made = kind.from_coords(present, device=device)
        parts = {
            "build": lambda kind=kind: kind.from_coords(present, device=device),
            "search, present": lambda made=made: made.search(present),
            "search, absent": lambda made=made: made.search(absent),
        }
        for operation, work in parts.items():
            row(contender, name + ", voxels", operation, rows, measured(torch, nothing, work))


def dynamicemb(torch: Any, device: str, name: str, rows: int) -> None:
    """Rows of 32 floats: dynamicemb's lookup in training, and `get` of a HashMap."""
    import dynamicemb as peer
    from dynamicemb.batched_dynamicemb_tables import BatchedDynamicEmbeddingTablesV2

    import tensorhash

    width = 32
    capacity = 1 << (rows * 4 // 3).bit_length()
    options = peer.DynamicEmbTableOptions(
        index_type=torch.int64,
        embedding_dtype=torch.float32,
        dim=width,
        max_capacity=capacity,
        local_hbm_for_values=capacity * width * 4,
        score_strategy=peer.DynamicEmbScoreStrategy.TIMESTAMP,
    )
    theirs = BatchedDynamicEmbeddingTablesV2(
        table_options=[options],
        table_names=["rows"],
        pooling_mode=peer.DynamicEmbPoolingMode.NONE,
        output_dtype=torch.float32,
        device=torch.device(device),
        optimizer=peer.EmbOptimType.SGD,
    )
    keys = torch.randperm(rows, device=device) * 0x9E3779B97F4A7C15 % (2**62)
    offsets = torch.arange(rows + 1, device=device)
    work = {"dynamicemb": lambda: theirs(keys, offsets)}
    ours = tensorhash.HashMap(rows, torch.int64, (), torch.float32, (width,), device=device)
    ours.insert(keys, torch.zeros((rows, width), device=device))
    work["tensorhash"] = lambda: ours.get(keys)
    for contender, call in work.items():
        called = measured(torch, nothing, call)
        row(contender, name + ", rows of 32 floats", "look up", rows, called)


PEERS = {"warpconvnet": warpconvnet, "dynamicemb": dynamicemb}


def main() -> None:
    device = f"cuda:{sys.argv[1]}"
    sizes = list(zip(sys.argv[2::2], map(int, sys.argv[3::2]), strict=True))
    for package, measure in PEERS.items():
        missing = [one for one in ("torch", package) if importlib.util.find_spec(one) is None]
        if missing:
            print("peer", package, f"not measured: {missing[0]} is not installed", sep="\t")
            continue
        import torch

        try:
            for name, rows in sizes:
                measure(torch, device, name, rows)
            print("peer", package, "measured", sep="\t")
        except Exception as error:  # the package's calls change from version to version
            said = str(error).splitlines() or [type(error).__name__]
            print("peer", package, f"not measured: {said[0]}", sep="\t")


if __name__ == "__main__":
    main()
