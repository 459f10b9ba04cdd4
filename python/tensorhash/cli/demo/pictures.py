"""The pictures of the demo, drawn with matplotlib. Each has one title that says what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize
from matplotlib.legend_handler import HandlerPathCollection
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from tensorhash._types import NumPyArray
from tensorhash.cli.demo import embedding, stages
from tensorhash.cli.demo.scans import Scans

# Colours that people with colour blindness can tell apart.
FIRST, SECOND, BOTH, GREY = "#0072B2", "#E69F00", "#009E73", "#999999"
NEAR = 20.0  # metres around the first scanner in the picture of voxels
NEAR_MESH = 10.0  # and in that of the mesh
_SETTINGS = {
    "figure.dpi": 110,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


class Album:
    """Draws pictures into a folder and remembers their captions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.captions: dict[str, str] = {}  #: by file name

    def _figure(self, width: float = 9.0, height: float = 6.0) -> Any:
        plt.rcParams.update(_SETTINGS)
        return plt.subplots(figsize=(width, height), layout="constrained")

    def _space(self) -> Any:
        plt.rcParams.update(_SETTINGS)
        figure = plt.figure(figsize=(9, 6.5), layout="constrained")
        return figure, figure.add_subplot(projection="3d", computed_zorder=False)

    def _save(self, figure: Any, name: str, caption: str) -> None:
        figure.savefig(self._folder / name, bbox_inches="tight", pad_inches=0.15)
        plt.close(figure)
        self.captions[name] = caption

    def scans(self, scans: Scans) -> None:
        """Both scans from above."""
        view = _View(scans.points[:, :2])
        figure, axes = self._figure(9, view.height)
        for cloud, origin, color, label in zip(
            scans.clouds, scans.origins, (FIRST, SECOND), ("first", "second"), strict=True
        ):
            name = f"{label} scan: {len(cloud):,} points"
            axes.scatter(*view.place(cloud), s=0.8, c=color, lw=0, label=name)
            axes.plot(*view.place(origin[None]), "^", c=color, mec="black", ms=9)
        axes.plot([], [], "^", c="white", mec="black", ms=9, label="scanner")
        axes.grid(alpha=0.3)
        view.finish(axes)
        _legend_below(axes)
        axes.set_title(f"The input: {scans.name}, seen from above")
        self._save(
            figure, "1-scans.png", "Both scans in one frame. The pose of the second is known."
        )

    def voxels(self, scans: Scans, voxels: stages.Voxelised) -> None:
        """One point per voxel, in 3-D, coloured by height."""
        figure, axes = self._space()
        near = np.linalg.norm(voxels.means[:, :2], axis=1) < NEAR
        points = voxels.means[near]
        low, high = np.percentile(points[:, 2], [1, 99])
        colors = {"c": points[:, 2], "cmap": "viridis", "vmin": low, "vmax": high}
        drawn = axes.scatter(*points.T, s=7, marker="s", lw=0, depthshade=False, **colors)
        _finish_space(axes, points)
        figure.colorbar(drawn, ax=axes, label="height z in m", shrink=0.6, pad=0.02)
        figure.suptitle(
            f"{len(scans.points):,} points become {len(voxels.means):,} voxels of {stages.VOXEL:g} m "
            f"(shown: within {NEAR:g} m)",
            fontsize=12,
            fontweight="bold",
        )
        self._save(figure, "2-voxels.png", "The mean of the points in each voxel (voxelize).")

    def counts(self, counts: NumPyArray, points: int) -> None:
        """The number of voxels against their size."""
        figure, axes = self._figure()
        axes.loglog(stages.SIZES, counts, "o-", c=FIRST, label="occupied voxels")
        axes.axhline(points, ls="--", c=GREY, label=f"all {points:,} points")
        axes.set(xlabel="edge of a voxel in m", ylabel="number of voxels")
        ticks = [0.05, 0.1, 0.2, 0.5, 1, 2]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        for size, count in zip(stages.SIZES[::3], counts[::3], strict=True):
            axes.annotate(
                f"{count:,}", (size, count), xytext=(6, 6), textcoords="offset points", fontsize=9
            )
        axes.grid(alpha=0.3)
        axes.legend()
        axes.set_title("The larger the voxels, the fewer remain")
        self._save(figure, "3-counts.png", "Distinct voxels for 13 sizes (unique).")

    def density(self, columns: stages.Columns) -> None:
        """Points per column of ground, from above."""
        view = _View(np.repeat(columns.keys * stages.COLUMN, columns.counts, axis=0))
        figure, axes = self._figure(9, view.height)
        image, extent = view.raster(columns.keys, columns.counts, stages.COLUMN)
        shown = axes.imshow(image, extent=extent, cmap="viridis", norm=LogNorm(vmin=1))
        label = f"points per column of {stages.COLUMN:g} m x {stages.COLUMN:g} m"
        figure.colorbar(shown, ax=axes, label=label, location="bottom", aspect=50, pad=0.04)
        view.finish(axes)
        axes.set_title("Where the scanner looked: number of points per ground column")
        self._save(figure, "4-density.png", "Group-by: the number of points in each column.")

    def overlap(self, columns: stages.Columns) -> None:
        """The columns that one scan or both saw."""
        view = _View(np.repeat(columns.keys * stages.COLUMN, columns.counts, axis=0))
        figure, axes = self._figure(9, view.height)
        image, extent = view.raster(columns.keys, columns.scans, stages.COLUMN)
        colors = ListedColormap([FIRST, SECOND, BOTH])
        axes.imshow(image, extent=extent, cmap=colors, norm=BoundaryNorm([0.5, 1.5, 2.5, 3.5], 3))
        kinds = {"both scans": (3, BOTH), "first only": (1, FIRST), "second only": (2, SECOND)}
        for label, (code, color) in kinds.items():
            share = np.mean(columns.scans == code)
            axes.plot([], [], "s", c=color, ms=9, label=f"{label}: {share:.0%} of the columns")
        view.finish(axes)
        _legend_below(axes)
        axes.set_title(f"How much the scans overlap, by ground column of {stages.COLUMN:g} m")
        self._save(figure, "5-overlap.png", "Group-by: which scan saw the column.")

    def mesh(self, surface: stages.Surface) -> None:
        """The fused surface, lit from above."""
        figure, axes = self._space()
        corners = surface.vertices[surface.triangles]
        corners = corners[np.linalg.norm(corners[:, :, :2].mean(axis=1), axis=1) < NEAR_MESH]
        heights = corners[:, :, 2].mean(axis=1)
        low, high = np.percentile(heights, [1, 99])
        scale = ScalarMappable(Normalize(low, high), "viridis")
        colors = scale.to_rgba(heights)
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        light = np.array([0.3, -0.5, 0.81])
        colors[:, :3] *= (0.45 + 0.55 * np.abs(normals @ light))[:, None]
        axes.add_collection3d(
            Poly3DCollection(corners, facecolors=colors, edgecolors=colors, linewidths=0.2)
        )
        points = corners.reshape(-1, 3)
        _finish_space(axes, points)
        figure.colorbar(scale, ax=axes, label="height z in m", shrink=0.6, pad=0.02)
        figure.suptitle(
            f"Both scans fused into one surface of {len(surface.triangles):,} triangles "
            f"(shown: within {NEAR_MESH:g} m)",
            fontsize=12,
            fontweight="bold",
        )
        caption = (
            f"VoxelBlockGrid.integrate with voxels of {stages.MESH_VOXEL:g} m, then marching cubes."
        )
        self._save(figure, "6-mesh.png", caption)

    def neighbours(self, found: stages.Neighbourhood) -> None:
        """The occupied neighbours of each voxel."""
        figure, axes = self._figure()
        heights = np.bincount(found.neighbours, minlength=28)[1:]
        axes.bar(np.arange(1, 28), heights, color=FIRST, width=0.85)
        mean = found.neighbours.mean()
        axes.axvline(mean, c=SECOND, lw=2, label=f"mean: {mean:.1f}")
        axes.set_xticks(range(1, 28, 2))
        axes.set(
            xlabel="occupied voxels among the 27 of a 3 x 3 x 3 kernel, itself included",
            ylabel="number of voxels",
        )
        axes.grid(axis="y", alpha=0.3)
        axes.legend()
        share = found.pairs / (27 * len(found.neighbours))
        axes.set_title(
            f"A sparse convolution needs {found.pairs:,} products, {share:.0%} of the dense ones"
        )
        self._save(
            figure,
            "7-kernel-map.png",
            f"The kernel map of {len(found.neighbours):,} voxels of {stages.CONV_VOXEL:g} m: {found.pairs:,} pairs.",
        )

    def learning(self, learned: embedding.Learned) -> None:
        """The error of the embedding while new ids arrive."""
        figure, axes = self._figure()
        seen = np.arange(1, len(learned.errors) + 1) * embedding.BATCH / 1e6
        axes.plot(seen, learned.errors, c=FIRST, label="error before each step (left)")
        axes.axhline(
            embedding.NOISE, ls="--", c=GREY, label="noise in the ratings: the best possible (left)"
        )
        axes.set(
            xlabel="ratings seen, in millions", ylabel="root mean square error", ylim=(0, None)
        )
        right = axes.twinx()
        right.spines["right"].set_visible(True)
        right.plot(seen, learned.ids / 1e3, c=SECOND, label="users and items in the tables (right)")
        right.set(ylabel="ids, in thousands", ylim=(0, None))
        lines = [*axes.get_lines(), *right.get_lines()]
        axes.legend(
            lines,
            [line.get_label() for line in lines],
            loc="upper center",
        )
        axes.set_title("The error falls although new users and items keep arriving")
        self._save(
            figure,
            "8-embedding.png",
            "Adagrad steps inside two tables (update with missing='insert').",
        )

    def rooms(self, segmented: Any) -> None:
        """The classes of a held-out room without its ceiling: the right ones and the network's."""
        from tensorhash.cli.demo.rooms import CLASSES, VOXEL

        room, guesses, right = segmented.room, segmented.guesses, segmented.right()
        seen = room.coords[:, 2] < room.coords[:, 2].max() - 1
        order = np.argsort(room.coords[seen, 2], kind="stable")  # high voxels over low ones
        places = room.coords[seen][order] * VOXEL
        plt.rcParams.update(_SETTINGS)
        figure, panels = plt.subplots(1, 2, figsize=(9, 5), layout="constrained")
        colors = plt.get_cmap("tab10")
        for axes, classes, title in zip(
            panels, (room.labels, guesses), ("as made", "as a MinkUNet sees it"), strict=True
        ):
            shown = colors(classes[seen][order])
            axes.scatter(*places[:, :2].T, c=shown, s=14, marker="s", lw=0)
            axes.set_title(title)
            axes.set_aspect("equal")
            axes.set(xlabel="x in m", ylabel="y in m")
        for number in np.union1d(room.labels[seen], guesses[seen]):
            panels[0].plot([], [], "s", c=colors(number), label=CLASSES[number])
        figure.legend(loc="outside lower center", ncols=len(CLASSES))
        figure.suptitle(
            f"A room that was not trained on: {right:.0%} of its voxels are right",
            fontsize=12,
            fontweight="bold",
        )
        self._save(
            figure, "10-rooms.png", "Voxels of a synthetic room from above, without the ceiling."
        )

    def remainders(self, compared: Any) -> None:
        """The error with a row per id, and with rows that ids share."""
        figure, axes = self._figure()
        seen = np.arange(1, len(compared.ours) + 1) * embedding.BATCH / 1e6
        axes.plot(seen, compared.shared, c=SECOND, label="torch.nn.Embedding, row = id modulo rows")
        axes.plot(seen, compared.ours, c=FIRST, label="HashEmbedding, one row per id")
        axes.axhline(embedding.NOISE, ls="--", c=GREY, label="noise: the best possible")
        axes.set(
            xlabel="ratings seen, in millions", ylabel="root mean square error", ylim=(0, None)
        )
        axes.grid(alpha=0.3)
        axes.legend()
        axes.set_title(f"With {compared.rows:,} rows each: ids that share a row learn less")
        self._save(
            figure,
            "11-hash-embedding.png",
            "Every second batch of picture 8, learned in torch. Both train with Adagrad at one rate.",
        )

    def times(self, timings: list[stages.Timing]) -> None:
        """Our times beside NumPy's."""
        compared = [one for one in timings if one.numpy is not None][::-1]
        figure, axes = self._figure(9, 1.2 + 0.75 * len(compared))
        at = np.arange(len(compared))
        ours = np.array([one.ours for one in compared]) * 1e3
        numpy = np.array([one.numpy for one in compared], float) * 1e3
        axes.barh(at + 0.2, ours, 0.38, color=FIRST, label="tensorhash")
        axes.barh(at - 0.2, numpy, 0.38, color=GREY, label="NumPy")
        for y, mine, other in zip(at, ours, numpy, strict=True):
            axes.text(
                max(mine, other) * 1.08, y, f"{other / mine:.1f}x", va="center", fontweight="bold"
            )
        axes.set_xscale("log")
        axes.set_xlim(ours.min() / 3, numpy.max() * 3)
        axes.set_yticks(at, [one.step for one in compared])
        axes.set_xlabel("milliseconds on this machine, logarithmic; shorter is better")
        axes.grid(axis="x", alpha=0.3)
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16 if len(compared) > 4 else -0.3),
            ncols=2,
            frameon=False,
        )
        axes.set_title("The same steps with tensorhash and with NumPy")
        self._save(figure, "9-times.png", "The table above as a picture.")


def _finish_space(axes: Any, points: NumPyArray) -> None:
    """Limits, labels and the point of view, the same in all pictures of space."""
    low, high = points.min(axis=0), points.max(axis=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(high - low, zoom=1.3)
    axes.view_init(elev=42, azim=-50)
    axes.set(xlabel="x in m", ylabel="y in m")
    axes.set_zticks([])


def _legend_below(axes: Any) -> None:
    """A legend that covers no data, with dots that are large enough to see."""

    def enlarge(handle: Any, original: Any) -> None:
        handle.update_from(original)
        handle.set_sizes([40])

    dots = {PathCollection: HandlerPathCollection(update_func=enlarge)}
    axes.figure.legend(loc="outside lower center", ncols=3, frameon=False, handler_map=dots)


class _View:
    """A map of the ground, turned so that its longer side lies across the picture.

    A few hits far away are left out, so that the rest is large enough to see.
    """

    def __init__(self, points: NumPyArray) -> None:
        low, high = np.percentile(points, 0.1, axis=0), np.percentile(points, 99.9, axis=0)
        self._turned = bool(high[1] - low[1] > high[0] - low[0])
        self._low, self._high = low - 1, high + 1
        wide, tall = np.sort(self._high - self._low)[::-1]
        self.height = float(9 * tall / wide + 1.5)  #: inches of a picture that is 9 inches wide

    def place(self, points: NumPyArray) -> tuple[NumPyArray, NumPyArray]:
        """(across, up) of points."""
        return (points[:, 1], points[:, 0]) if self._turned else (points[:, 0], points[:, 1])

    def raster(
        self, keys: NumPyArray, values: NumPyArray, size: float
    ) -> tuple[NumPyArray, tuple[float, ...]]:
        """An image of cells, NaN where there is none, and its extent in metres."""
        across, up = self.place(keys)
        image = np.full((np.ptp(up) + 1, np.ptp(across) + 1), np.nan)
        image[up - up.min(), across - across.min()] = values
        # imshow's first row is at the third number of the extent if the axis points there.
        edges = (across.min(), across.max() + 1, up.max() + 1, up.min())
        return image, tuple(float(edge * size) for edge in edges)

    def finish(self, axes: Any) -> None:
        """Labels and limits. A turned map has x downwards: it must not be a mirror image."""
        names, low, high = "xy", self._low, self._high
        across, up = (1, 0) if self._turned else (0, 1)
        axes.set(xlabel=f"{names[across]} in m", ylabel=f"{names[up]} in m", aspect="equal")
        axes.set_xlim(low[across], high[across])
        axes.set_ylim(low[up], high[up])
        if self._turned:
            axes.invert_yaxis()
