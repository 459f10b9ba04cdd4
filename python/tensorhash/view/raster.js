"use strict";
// A software renderer for a 2-D canvas: points, and voxels as cubes, with a depth buffer.
// The projection is orthographic, so all cubes look the same: they are copies of one stamp.

const MOST_PIXELS = 3e7; // that the cubes of one frame may write

class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.resize();
  }

  // Follows the size of the canvas on the page.
  resize() {
    const width = Math.max(1, this.canvas.clientWidth), height = Math.max(1, this.canvas.clientHeight);
    if (width === this.width && height === this.height) return;
    this.width = this.canvas.width = width;
    this.height = this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.depth = new Float32Array(width * height);
  }

  clear() {
    this.pixels.fill(0xff1c1815);
    this.depth.fill(-Infinity);
  }

  show() { this.context.putImageData(this.image, 0, 0); }

  // positions: x, y, z of each point; colors: one byte each, an entry of the palette.
  points(camera, positions, colors, palette, edge) {
    const { right, up, front, scale } = camera, { width, height, pixels, depth } = this;
    const centerX = width / 2 + camera.moveX, centerY = height / 2 + camera.moveY;
    const rx = right[0] * scale, ry = right[1] * scale;
    const ux = -up[0] * scale, uy = -up[1] * scale, uz = -up[2] * scale;
    const [fx, fy, fz] = front;
    const lastX = width - edge, lastY = height - edge;
    for (let i = 0, j = 0; i < colors.length; i++, j += 3) {
      const x = positions[j], y = positions[j + 1], z = positions[j + 2];
      const column = Math.floor(centerX + rx * x + ry * y);
      const line = Math.floor(centerY + ux * x + uy * y + uz * z);
      if (column < 0 || column > lastX || line < 0 || line > lastY) continue;
      const near = fx * x + fy * y + fz * z, color = palette[colors[i]];
      for (let dy = 0, start = line * width + column; dy < edge; dy++, start += width) {
        for (let at = start; at < start + edge; at++) {
          if (near > depth[at]) { depth[at] = near; pixels[at] = color; }
        }
      }
    }
  }

  // positions: the centres of cubes with this edge in scene units. palettes: one per kind of pixel.
  cubes(camera, positions, colors, palettes, edge) {
    const stamp = makeStamp(camera, edge, this.width);
    if (stamp.count * colors.length > MOST_PIXELS) {
      // Too many for a fluent picture: small squares instead of cubes.
      const side = Math.max(1, Math.floor(Math.sqrt(MOST_PIXELS / colors.length)));
      this.points(camera, positions, colors, palettes[2], side);
      return;
    }
    const { right, up, front, scale } = camera, { width, height, pixels, depth } = this;
    const centerX = width / 2 + camera.moveX, centerY = height / 2 + camera.moveY;
    const rx = right[0] * scale, ry = right[1] * scale;
    const ux = -up[0] * scale, uy = -up[1] * scale, uz = -up[2] * scale;
    const [fx, fy, fz] = front, { offsets, depths, kinds, columns, lines, reach, count } = stamp;
    for (let i = 0, j = 0; i < colors.length; i++, j += 3) {
      const x = positions[j], y = positions[j + 1], z = positions[j + 2];
      const column = Math.floor(centerX + rx * x + ry * y);
      const line = Math.floor(centerY + ux * x + uy * y + uz * z);
      if (column < -reach || column >= width + reach || line < -reach || line >= height + reach) continue;
      const near = fx * x + fy * y + fz * z, color = colors[i], start = line * width + column;
      const inside = column >= reach && column < width - reach && line >= reach && line < height - reach;
      for (let k = 0; k < count; k++) {
        if (!inside) {
          const c = column + columns[k], l = line + lines[k];
          if (c < 0 || c >= width || l < 0 || l >= height) continue;
        }
        const at = start + offsets[k], d = near + depths[k];
        if (d > depth[at]) { depth[at] = d; pixels[at] = palettes[kinds[k]][color]; }
      }
    }
  }
}

// The pixels of a cube's picture around its centre: where, how near, and on which face.
// Kinds 0, 1, 2 are faces across x, y, z; 3, 4, 5 are the same near an edge of the cube.
function makeStamp(camera, edge, width) {
  const { right, up, scale } = camera, half = edge / 2;
  // A direction of exactly 0 would divide 0 by 0.
  const front = camera.front.map((part) => (Math.abs(part) < 1e-9 ? 1e-9 : part));
  const reach = Math.max(1, Math.ceil(half * scale * Math.sqrt(3)) + 1), room = (2 * reach + 1) ** 2;
  const offsets = new Int32Array(room), columns = new Int32Array(room), lines = new Int32Array(room);
  const depths = new Float32Array(room), kinds = new Uint8Array(room);
  const border = half - 0.6 / scale, outlined = edge * scale >= 7;
  const base = [0, 0, 0];
  let count = 0;
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      let enter = Infinity, leave = -Infinity, face = 0;
      for (let k = 0; k < 3; k++) {
        base[k] = (right[k] * dx - up[k] * dy) / scale;
        const far = Math.abs(half / front[k]), middle = -base[k] / front[k];
        if (middle + far < enter) { enter = middle + far; face = k; }
        if (middle - far > leave) leave = middle - far;
      }
      if (enter < leave) continue;
      let kind = face;
      for (let k = 0; outlined && k < 3; k++) {
        if (k !== face && Math.abs(base[k] + front[k] * enter) > border) kind = face + 3;
      }
      offsets[count] = dy * width + dx;
      columns[count] = dx;
      lines[count] = dy;
      depths[count] = enter;
      kinds[count++] = kind;
    }
  }
  if (count === 0) { depths[0] = half; kinds[0] = 2; count = 1; } // smaller than a pixel
  return { reach, count, offsets, columns, lines, depths, kinds };
}

// Viridis in nine colours, interpolated to 256. Pixels are little-endian: 0xAABBGGRR.
const STOPS = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

function makePalette(brightness) {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (STOPS.length - 1), k = Math.min(STOPS.length - 2, Math.floor(at));
    const [r, g, b] = [0, 1, 2].map((c) =>
      Math.round((STOPS[k][c] + (at - k) * (STOPS[k + 1][c] - STOPS[k][c])) * brightness));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}
