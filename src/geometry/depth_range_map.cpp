// Projects the corners of each block, and widens the range of all squares in their rectangle.
#include "geometry/depth_range_map.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/parallel.hpp"

namespace tensorhash::geometry {
namespace {

/// The squares [u_min, u_max] x [v_min, v_max] and the depths of one block.
struct Footprint {
    std::int64_t u_min;
    std::int64_t v_min;
    std::int64_t u_max = 0;
    std::int64_t v_max = 0;
    float near;
    float far;
    bool empty = true;
};

struct Projector {
    BlockScale scale;
    Pinhole pinhole;
    Rigid pose;
    float step;
    std::int64_t width;  // in squares
    std::int64_t height;
    DepthRange range;

    Footprint footprint(std::int32_t const* key) const noexcept {
        Footprint out{width - 1,
                      height - 1,
                      0,
                      0,
                      static_cast<float>(range.max),
                      static_cast<float>(range.min)};
        for (int corner = 0; corner < 8; ++corner) {
            Vec3 const p = pose.apply({place(key[0], corner & 1), place(key[1], corner >> 1 & 1),
                                       place(key[2], corner >> 2 & 1)});
            if (p.z <= 0) continue;
            Pixel const pixel = pinhole.project(p);
            float const u = pixel.u / step;
            float const v = pixel.v / step;
            out.u_min = std::min(out.u_min, whole(std::floor(u)));
            out.v_min = std::min(out.v_min, whole(std::floor(v)));
            out.u_max = std::max(out.u_max, whole(std::ceil(u)));
            out.v_max = std::max(out.v_max, whole(std::ceil(v)));
            out.near = std::min(out.near, p.z);
            out.far = std::max(out.far, p.z);
        }
        out.u_min = std::max<std::int64_t>(0, out.u_min);
        out.v_min = std::max<std::int64_t>(0, out.v_min);
        out.u_max = std::min(width - 1, out.u_max);
        out.v_max = std::min(height - 1, out.v_max);
        out.empty = out.u_min >= out.u_max || out.v_min >= out.v_max || out.near >= out.far;
        return out;
    }

private:
    float place(std::int32_t key, int side) const noexcept {
        std::int64_t const voxel = (std::int64_t{key} + side) * scale.resolution;
        return static_cast<float>(voxel) * static_cast<float>(scale.voxel_size);
    }
    /// The limits are outside of every image, so what lies beyond them may move there.
    static std::int64_t whole(float x) noexcept {
        return static_cast<std::int64_t>(std::clamp(x, -1.0e9f, 1.0e9f));
    }
};

void widen(float* ranges, std::int64_t width, Footprint const& print, std::int64_t v) noexcept {
    for (std::int64_t u = print.u_min; u <= print.u_max; ++u) {
        float* const at = ranges + 2 * (v * width + u);
        at[0] = std::min(at[0], print.near);
        at[1] = std::max(at[1], print.far);
    }
}

}  // namespace

Tensor depth_ranges(BlockScale scale, Tensor const& blocks, Pinhole const& pinhole,
                    Rigid const& pose, RenderOptions const& view, DepthRange const& range) {
    std::int64_t const width = (view.width + view.range_step - 1) / view.range_step;
    std::int64_t const height = (view.height + view.range_step - 1) / view.range_step;
    Projector const projector{scale, pinhole, pose, static_cast<float>(view.range_step),
                              width, height,  range};
    auto const* const keys = static_cast<std::int32_t const*>(blocks.data());
    std::vector<Footprint> prints(static_cast<std::size_t>(blocks.shape()[0]));
    runtime::for_ranges(prints.size(), 512, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) prints[i] = projector.footprint(keys + 3 * i);
    });
    Tensor out = Tensor::empty({height, width, 2}, Dtype::Float32);
    auto* const ranges = static_cast<float*>(out.data());
    // One task per row of squares: no two tasks write to the same place.
    runtime::run_tasks(static_cast<std::size_t>(height), [&](std::size_t row) {
        auto const v = static_cast<std::int64_t>(row);
        for (std::int64_t u = 0; u < width; ++u) {
            ranges[2 * (v * width + u)] = static_cast<float>(range.max);
            ranges[2 * (v * width + u) + 1] = static_cast<float>(range.min);
        }
        for (Footprint const& print : prints) {
            if (!print.empty && print.v_min <= v && v <= print.v_max)
                widen(ranges, width, print, v);
        }
    });
    return out;
}

}  // namespace tensorhash::geometry
