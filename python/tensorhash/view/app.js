// The page: camera, mouse, slider, and the requests for points and voxels.

const element = (id) => document.getElementById(id);
const raster = new Raster(element("view"));
const PLAIN = makePalette(1);
const SHADED = [0.78, 0.62, 1, 0.5, 0.4, 0.65].map(makePalette);
const camera = { turn: 0.7, lift: 0.75, scale: 1, moveX: 0, moveY: 0, right: [], up: [], front: [] };
const shown = { points: null, voxels: null, edge: scene.size };
let frameRequested = false, asking = false, askAgain = false;

function aim() {
  const { turn, lift } = camera, s = Math.sin(turn), c = Math.cos(turn);
  camera.right = [c, s, 0];
  camera.up = [-s * Math.sin(lift), c * Math.sin(lift), Math.cos(lift)];
  camera.front = [s * Math.cos(lift), -c * Math.cos(lift), Math.sin(lift)];
}

// The whole scene in the middle of the canvas.
function fit() {
  aim();
  let wide = 0, high = 0;
  for (const corner of [0, 1, 2, 3, 4, 5, 6, 7]) {
    const at = [0, 1, 2].map((k) => scene.half[k] * ((corner >> k) & 1 ? 1 : -1));
    const dot = (axis) => Math.abs(axis[0] * at[0] + axis[1] * at[1] + axis[2] * at[2]);
    wide = Math.max(wide, dot(camera.right));
    high = Math.max(high, dot(camera.up));
  }
  camera.scale = 0.48 * Math.min(raster.width / Math.max(wide, 1e-9), raster.height / Math.max(high, 1e-9));
  camera.moveX = camera.moveY = 0;
}

function draw() {
  frameRequested = false;
  const start = performance.now();
  raster.resize();
  aim();
  raster.clear();
  const mode = document.querySelector("input[name=show]:checked").value, found = shown[mode];
  if (found && mode === "points") {
    raster.points(camera, found.positions, found.colors, PLAIN, found.colors.length > 300000 ? 1 : 2);
  } else if (found) {
    raster.cubes(camera, found.positions, found.colors, SHADED, shown.edge);
  }
  raster.show();
  scaleBar();
  const spent = performance.now() - start;
  element("frame").textContent = `frame: ${spent.toFixed(1)} ms`;
  element("frame").dataset.milliseconds = spent;
}

function redraw() {
  if (!frameRequested) { frameRequested = true; requestAnimationFrame(draw); }
}

// A bar of a round length: 1, 2 or 5 times a power of ten.
function scaleBar() {
  const longest = 150 / camera.scale, power = 10 ** Math.floor(Math.log10(longest));
  const length = [5, 2, 1].map((k) => k * power).find((k) => k <= longest) || power;
  element("bar").style.width = `${length * camera.scale}px`;
  element("length").textContent = `${Number(length.toPrecision(3))} units`;
}

function colorsOf(positions) {
  const count = positions.length / 3, colors = new Uint8Array(count);
  const [low, high] = scene.heights, factor = 255 / Math.max(high - low, 1e-9);
  for (let i = 0; i < count; i++) {
    colors[i] = Math.max(0, Math.min(255, (positions[3 * i + 2] + scene.center[2] - low) * factor));
  }
  return { positions, colors };
}

async function ask(what) {
  const response = await fetch(`${what}token=${scene.token}`, { cache: "no-store" });
  if (!response.ok) throw new Error(await response.text());
  const facts = JSON.parse(response.headers.get("X-Facts"));
  return { facts, ...colorsOf(new Float32Array(await response.arrayBuffer())) };
}

// The slider is logarithmic.
const sizeOfSlider = () =>
  Number((scene.least * (scene.most / scene.least) ** Number(element("size").value)).toPrecision(3));
const sliderOfSize = (size) => Math.log(size / scene.least) / Math.log(scene.most / scene.least);

// One request at a time; the last position of the slider always gets its answer.
async function revoxelise() {
  element("edge").textContent = String(sizeOfSlider());
  if (asking) { askAgain = true; return; }
  asking = true;
  do {
    askAgain = false;
    const edge = sizeOfSlider(), start = performance.now();
    try {
      const found = await ask(`voxels?size=${edge}&`);
      shown.voxels = found;
      shown.edge = edge;
      const spent = performance.now() - start;
      element("count").textContent = `${found.facts.voxels.toLocaleString("en")} voxels`;
      element("count").dataset.voxels = found.facts.voxels;
      element("count").dataset.edge = edge;
      element("time").textContent =
        `in ${found.facts.milliseconds.toFixed(1)} ms, on the page after ${spent.toFixed(0)} ms`;
      element("time").dataset.milliseconds = spent;
    } catch (error) {
      element("count").textContent = "";
      element("time").textContent = String(error.message);
    }
    redraw();
  } while (askAgain);
  asking = false;
}

function heightScale() {
  const context = element("colors").getContext("2d");
  for (let x = 0; x < 128; x++) {
    const color = PLAIN[2 * x];
    context.fillStyle = `rgb(${color & 255}, ${(color >> 8) & 255}, ${(color >> 16) & 255})`;
    context.fillRect(x, 0, 1, 10);
  }
  const [low, high] = scene.heights;
  element("heights").textContent = `z from ${low.toPrecision(3)} to ${high.toPrecision(3)} units`;
}

element("view").addEventListener("pointerdown", (event) => event.target.setPointerCapture(event.pointerId));
element("view").addEventListener("pointermove", (event) => {
  if (!event.buttons) return;
  if (event.shiftKey || event.buttons === 2) {
    camera.moveX += event.movementX;
    camera.moveY += event.movementY;
  } else {
    camera.turn -= event.movementX * 0.008;
    camera.lift = Math.max(-1.57, Math.min(1.57, camera.lift + event.movementY * 0.008));
  }
  redraw();
});
element("view").addEventListener("contextmenu", (event) => event.preventDefault());
element("view").addEventListener("wheel", (event) => {
  event.preventDefault();
  // A voxel is at most 300 pixels wide.
  const factor = Math.min(Math.exp(-event.deltaY * 0.0015), Math.max(1, 300 / (shown.edge * camera.scale)));
  const x = event.offsetX - raster.width / 2, y = event.offsetY - raster.height / 2;
  camera.moveX = x - (x - camera.moveX) * factor;
  camera.moveY = y - (y - camera.moveY) * factor;
  camera.scale *= factor;
  redraw();
}, { passive: false });
addEventListener("keydown", (event) => {
  if (event.key === "f" || event.key === "F") { fit(); redraw(); }
});
addEventListener("resize", redraw);
element("size").addEventListener("input", revoxelise);
for (const choice of document.querySelectorAll("input[name=show]")) choice.addEventListener("change", redraw);

async function begin() {
  raster.resize();
  fit();
  heightScale();
  element("size").value = sliderOfSize(scene.size);
  await revoxelise();
  shown.points = await ask("points?");
  const all = scene.points.toLocaleString("en"), part = shown.points.colors.length;
  element("points").textContent = `${all} points` + (part < scene.points ? `, ${part.toLocaleString("en")} shown` : "");
  document.body.dataset.ready = "yes";
  redraw();
}
begin();
