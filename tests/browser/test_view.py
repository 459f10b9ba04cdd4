"""`tensorhash view` in a real browser: counts, times, content of the screenshot, no outside requests."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from browser import Browser

from tensorhash import io
from tensorhash.cli.demo import scans

OUT = Path(__file__).parents[2] / "build" / "browser"
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
CANVAS = "document.getElementById('view').getBoundingClientRect()"


@pytest.fixture
def view(tmp_path):
    """Starts `tensorhash view` for a file; returns its address."""
    started = []

    def start(path, *options):
        command = [sys.executable, "-m", "tensorhash", "view", str(path), "--no-browser", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.fixture
def browser(tmp_path):
    OUT.mkdir(parents=True, exist_ok=True)
    with Browser(tmp_path) as made:
        yield made


def voxels_of(points, size):
    return len(np.unique(np.floor(points.astype(np.float64) / size), axis=0))


def move_slider(browser, value):
    browser.run(
        f"(() => {{ const s = document.getElementById('size'); s.value = {value};"
        f" s.dispatchEvent(new Event('input')); }})()"
    )
    browser.wait_for(
        "!asking && Number(document.getElementById('count').dataset.edge) === sizeOfSlider()"
    )
    browser.run(TWO_FRAMES)


def is_drawn(picture):
    """Whether each pixel of the canvas is not background."""
    return np.abs(picture[..., :3] - np.array([0x15, 0x18, 0x1C]) / 255).max(axis=2) > 0.05


def canvas_of(browser, path=None):
    picture = browser.screenshot(path)
    box = browser.run(f"({{...{CANVAS}.toJSON()}})")
    top, bottom = int(np.ceil(box["top"])), int(box["bottom"])
    return picture[top:bottom, int(np.ceil(box["left"])) : int(box["right"])]


def test_a_street_is_shown_and_revoxelised(tmp_path, view, browser):
    points = scans.synthetic().points
    io.write(tmp_path / "street.ply", points)
    address = view(tmp_path / "street.ply", "--size", "0.4")
    browser.open(address)
    browser.wait_for("document.body && document.body.dataset.ready === 'yes'")
    browser.run(TWO_FRAMES)
    assert browser.run(f"Number.isInteger({CANVAS}.top)")  # else the browser blurs the canvas
    text = browser.run("document.body.innerText")
    assert f"{len(points):,} points" in text and f"{voxels_of(points, 0.4):,} voxels" in text
    first = canvas_of(browser, OUT / "voxels.png")
    drawn = is_drawn(first)
    assert 0.05 < drawn.mean() < 0.9
    # Each height has its colour, in three shades: those of the faces that can be seen.
    levels = len(np.unique(np.floor(points[:, 2].astype(np.float64) / 0.4)))
    shades = len(np.unique((first[drawn][:, :3] * 255).astype(int), axis=0))
    assert 1.5 * levels < shades <= 3 * levels
    for value in (0.3, 0.55, 0.8):
        move_slider(browser, value)
        size = float(browser.run("document.getElementById('edge').textContent"))
        shown = int(browser.run("document.getElementById('count').dataset.voxels"))
        assert shown == voxels_of(points, size)
        assert f"{shown:,} voxels" in browser.run("document.body.innerText")
    coarse = canvas_of(browser, OUT / "coarse.png")
    assert not np.array_equal(coarse, first)
    browser.drag((600, 400), (800, 330))
    browser.run(TWO_FRAMES)
    turned = canvas_of(browser, OUT / "turned.png")
    assert (is_drawn(turned) != is_drawn(coarse)).mean() > 0.02
    browser.run("document.querySelector('input[value=points]').click()")
    browser.run(TWO_FRAMES)
    as_points = canvas_of(browser, OUT / "points.png")
    assert 0.01 < is_drawn(as_points).mean() < is_drawn(turned).mean()
    origin = address.partition("?")[0]
    outside = [url for url in browser.requests if not url.startswith((origin, "data:"))]
    assert browser.requests and outside == []


def test_one_cube_is_a_hexagon_in_three_shades(tmp_path, view, browser):
    """Two far corners fix the scene; between them is one voxel of known size and colour."""
    points = np.array([[0.5, 0.5, 0.5], [-9.5, -9.5, -9.5], [9.5, 9.5, 9.5]])
    io.write(tmp_path / "cube.xyz", points)
    browser.open(view(tmp_path / "cube.xyz", "--size", "1"))
    browser.wait_for("document.body && document.body.dataset.ready === 'yes'")
    browser.run("camera.turn = 0.6; camera.lift = 0.6; camera.scale = 100; redraw()")
    browser.run(TWO_FRAMES)
    drawn = is_drawn(canvas_of(browser, OUT / "cube.png"))
    # The area of a cube's picture: the sum of its faces times the direction's components.
    front = np.abs(browser.run("camera.front"))
    assert abs(drawn.sum() - 100**2 * front.sum()) < 0.02 * 100**2 * front.sum()
    # The centre of the scene is (0, 0, 0), that of the voxel (0.5, 0.5, 0.5).
    lines, columns = np.nonzero(drawn)
    right, up = np.array(browser.run("camera.right")), np.array(browser.run("camera.up"))
    height, width = drawn.shape
    assert abs(columns.mean() - (width / 2 + 50 * right.sum())) < 1.5
    assert abs(lines.mean() - (height / 2 - 50 * up.sum())) < 1.5


def test_a_million_points_are_fast(tmp_path, view, browser):
    rng = np.random.default_rng(0)
    street = scans.synthetic().points
    points = np.concatenate([street + rng.normal(scale=0.02, size=street.shape) for _ in range(8)])
    points = points[:1_000_000].astype(np.float32)
    assert len(points) == 1_000_000
    io.write(tmp_path / "million.npy", points)
    browser.open(view(tmp_path / "million.npy", "--size", "0.2"))
    browser.wait_for("document.body && document.body.dataset.ready === 'yes'")
    steps, frames = [], {"points": [], "voxels": []}
    for value in (0.4, 0.45, 0.5, 0.55, 0.6):
        move_slider(browser, value)
        steps.append(browser.run("Number(document.getElementById('time').dataset.milliseconds)"))
    move_slider(browser, 0.45)
    for mode, spent in frames.items():
        browser.run(f"document.querySelector('input[value={mode}]').click()")
        for _ in range(5):
            browser.drag((600, 400), (640, 400))
            browser.run(TWO_FRAMES)
            spent.append(
                browser.run("Number(document.getElementById('frame').dataset.milliseconds)")
            )
    browser.screenshot(OUT / "million.png")
    medians = {
        "step": np.median(steps),
        **{mode: np.median(spent) for mode, spent in frames.items()},
    }
    print({name: f"{value:.0f} ms" for name, value in medians.items()})
    assert medians["step"] < 200
    assert medians["points"] < 100 and medians["voxels"] < 100


def test_a_dense_block_stays_fluent(tmp_path, view, browser):
    """A million voxels that fill space: cubes would write too many pixels when they are large."""
    grid = np.stack(np.meshgrid(*[np.arange(100.0) + 0.5] * 3), axis=-1).reshape(-1, 3)
    io.write(tmp_path / "block.npy", grid)
    browser.open(view(tmp_path / "block.npy", "--size", "1"))
    browser.wait_for("document.body && document.body.dataset.ready === 'yes'")
    assert "1,000,000 voxels" in browser.run("document.body.innerText")
    for scale in (5, 20, 60):
        browser.run(f"camera.scale = {scale}; redraw()")
        browser.run(TWO_FRAMES)
        spent = browser.run("Number(document.getElementById('frame').dataset.milliseconds)")
        assert spent < 300, scale
        assert is_drawn(canvas_of(browser)).mean() > 0.2


def test_a_wrong_token_shows_nothing(tmp_path, view, browser):
    io.write(tmp_path / "a.xyz", [[0.0, 0, 0]])
    address = view(tmp_path / "a.xyz")
    browser.open(address[:-1] + ("A" if address[-1] != "A" else "B"))
    browser.wait_for("document.body && document.body.innerText.includes('expected the token')")
    assert "a.xyz" not in browser.run("document.body.innerText")
