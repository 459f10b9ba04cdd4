"""All steps of the demo in order: `tour` has over 50 lines, one or two per step."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tensorhash.cli._output import Progress
from tensorhash.cli.demo import embedding, report, scans, stages
from tensorhash.cli.demo.pictures import Album


class Tour(NamedTuple):
    """What the demo says in the end."""

    lines: list[str]
    pictures: int
    report: Path


STEPS = 10  # without those of torch
TORCH_STEPS = 2


def tour(folder: Path, synthetic: bool, progress: Progress, with_torch: bool = False) -> Tour:
    """Runs every step and writes pictures and report into `folder`."""
    with progress.step("getting two LiDAR scans"):
        found, remark = _scans(folder / "data", synthetic)
    album = Album(folder)
    with progress.step("voxelising"):
        voxels, voxel_time = stages.voxelise(found)
    with progress.step("counting voxels of 13 sizes"):
        counts, count_time = stages.count_sizes(found)
    with progress.step("finding distinct points"):
        distinct, distinct_time = stages.distinct_points(found)
    with progress.step("grouping by ground column"):
        columns, group_time = stages.group(found)
    with progress.step("fusing both scans into a mesh"):
        surface, mesh_time = stages.fuse(found)
    with progress.step("building the kernel map"):
        neighbours, map_time = stages.kernel_map(found)
    with progress.step("learning an embedding of new ids"):
        learned, learn_time = embedding.learn()
    timings = [voxel_time, count_time, distinct_time, group_time, mesh_time, map_time, learn_time]
    segmented: Any = None
    compared: Any = None
    if with_torch:
        from tensorhash.cli.demo import recommending, segmentation

        with progress.step("training a MinkUNet"):
            segmented, unet_time = segmentation.segment()
        with progress.step("training a HashEmbedding"):
            compared, hash_time = recommending.compare()
        timings += [unet_time, hash_time]
    with progress.step("drawing pictures"):
        album.scans(found)
        album.voxels(found, voxels)
        album.counts(counts, len(found.points))
        album.density(columns)
        album.overlap(columns)
        album.mesh(surface)
        album.neighbours(neighbours)
        album.learning(learned)
        if segmented:
            album.rooms(segmented)
            album.remainders(compared)
        album.times(timings)
    facts = [
        f"{found.name}: {len(found.points):,} points, {distinct:,} of them distinct; "
        f"{found.dropped:,} rays without a return were dropped",
        *([remark] if remark else []),
    ]
    with progress.step("writing the report"):
        page = report.write(folder, timings, album.captions, facts)
    lines = [*(f"  {fact}" for fact in facts), "", report.text_table(timings), ""]
    lines += [f"  {report.RULE}.", f"  {report.machine()}."]
    return Tour(lines, len(album.captions), page)


def _scans(folder: Path, synthetic: bool) -> tuple[scans.Scans, str]:
    """The real scans, or the synthetic ones with the reason."""
    if synthetic:
        return scans.synthetic(), ""
    try:
        return scans.load(folder), ""
    except (OSError, ValueError) as error:
        return scans.synthetic(), f"synthetic, because the real scans could not be had: {error}"
