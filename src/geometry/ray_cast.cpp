// Renders a grid: one ray per pixel.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "geometry/blocks.hpp"
#include "geometry/camera.hpp"
#include "geometry/depth_range_map.hpp"
#include "geometry/images.hpp"
#include "geometry/ray_caster.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

/// The images to render; null if not wanted.
struct Targets {
    float* depth = nullptr;
    float* vertex = nullptr;
    float* normal = nullptr;
    float* color = nullptr;
    bool* mask = nullptr;
    std::int64_t* index = nullptr;
    float* share = nullptr;
    std::array<float*, 3> slope{};

    bool wants_corners() const noexcept {
        return normal || color || mask || index || share || slope[0] || slope[1] || slope[2];
    }
};

/// Writes the results of one pixel to the images.
class PixelWriter {
public:
    PixelWriter(Targets const& targets, RayCaster const& caster, Rigid const& pose,
                float depth_scale)
        : targets_(targets), caster_(caster), pose_(pose), depth_scale_(depth_scale) {}

    void write(std::size_t pixel, Hit const& hit) const noexcept {
        if (targets_.depth) targets_.depth[pixel] = hit.t * depth_scale_;
        if (targets_.vertex) put(targets_.vertex + 3 * pixel, pose_.apply(hit.point));
        if (!targets_.wants_corners()) return;
        auto const corners = caster_.corners(hit.point);
        if (!corners) return;
        write_corners(pixel, *corners);
        float sum = 0;
        for (float const share : corners->share) sum += share;
        if (!(sum > 0)) return;
        if (targets_.color) write_color(pixel, *corners, sum);
        if (targets_.normal) write_normal(pixel, *corners);
    }

private:
    static void put(float* out, Vec3 v) noexcept {
        out[0] = v.x;
        out[1] = v.y;
        out[2] = v.z;
    }

    void write_corners(std::size_t pixel, Corners const& corners) const noexcept {
        std::size_t const at = kCorners * pixel;
        if (targets_.mask != nullptr)
            std::copy_n(corners.mask.begin(), kCorners, targets_.mask + at);
        if (targets_.index != nullptr)
            std::copy_n(corners.index.begin(), kCorners, targets_.index + at);
        if (targets_.share != nullptr)
            std::copy_n(corners.share.begin(), kCorners, targets_.share + at);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            if (targets_.slope[axis] == nullptr) continue;
            std::copy_n(corners.slope[axis].begin(), kCorners, targets_.slope[axis] + at);
        }
    }

    void write_color(std::size_t pixel, Corners const& corners, float sum) const noexcept {
        for (std::size_t c = 0; c < 3; ++c) {
            float mixed = 0;
            for (std::size_t k = 0; k < kCorners; ++k) {
                if (!corners.mask[k]) continue;
                auto const voxel = static_cast<std::size_t>(corners.index[k]);
                mixed += corners.share[k] * caster_.blocks().color[3 * voxel + c];
            }
            targets_.color[3 * pixel + c] = mixed / (sum * 255.0f);
        }
    }

    void write_normal(std::size_t pixel, Corners const& corners) const noexcept {
        std::array<float, 3> n{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            for (std::size_t k = 0; k < kCorners; ++k) {
                if (!corners.mask[k]) continue;
                auto const voxel = static_cast<std::size_t>(corners.index[k]);
                n[axis] += corners.slope[axis][k] * caster_.blocks().distance(voxel);
            }
        }
        float const length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        float const divisor = std::max(length, 1e-5f);
        put(targets_.normal + 3 * pixel,
            pose_.rotate({-n[0] / divisor, -n[1] / divisor, -n[2] / divisor}));
    }

    Targets const& targets_;
    RayCaster const& caster_;
    Rigid const& pose_;
    float depth_scale_;
};

struct Kind {
    char const* name;
    std::int64_t channels;
    Dtype dtype;
    void (*aim)(Targets&, void*);
};

template <auto Member>
void aim_at(Targets& targets, void* data) {
    targets.*Member = static_cast<std::remove_reference_t<decltype(targets.*Member)>>(data);
}
template <std::size_t Axis>
void aim_slope(Targets& targets, void* data) {
    targets.slope[Axis] = static_cast<float*>(data);
}

constexpr std::array<Kind, 10> kKinds{{
    {"depth", 1, Dtype::Float32, &aim_at<&Targets::depth>},
    {"vertex", 3, Dtype::Float32, &aim_at<&Targets::vertex>},
    {"normal", 3, Dtype::Float32, &aim_at<&Targets::normal>},
    {"color", 3, Dtype::Float32, &aim_at<&Targets::color>},
    {"mask", 8, Dtype::Bool, &aim_at<&Targets::mask>},
    {"index", 8, Dtype::Int64, &aim_at<&Targets::index>},
    {"interp_ratio", 8, Dtype::Float32, &aim_at<&Targets::share>},
    {"interp_ratio_dx", 8, Dtype::Float32, &aim_slope<0>},
    {"interp_ratio_dy", 8, Dtype::Float32, &aim_slope<1>},
    {"interp_ratio_dz", 8, Dtype::Float32, &aim_slope<2>},
}};

Kind const& kind_of(std::string const& name, bool colored) {
    auto const* const found = std::find_if(kKinds.begin(), kKinds.end(),
                                           [&](Kind const& kind) { return name == kind.name; });
    if (found == kKinds.end()) {
        std::string known;
        for (Kind const& kind : kKinds) known += std::string(known.empty() ? "" : ", ") + kind.name;
        throw ValueError("render_attributes: expected some of " + known + ", got '" + name + "'");
    }
    if (name == "color" && !colored) {
        throw ValueError(
            "render_attributes: expected no 'color', because the grid has no such attribute");
    }
    return *found;
}

void check_view(RenderOptions const& view) {
    if (view.width < 1 || view.height < 1 || view.width > 65536 || view.height > 65536) {
        throw ValueError("width: expected width and height of 1 to 65536, got " +
                         std::to_string(view.width) + " and " + std::to_string(view.height));
    }
    if (view.range_step < 1) {
        throw ValueError("range_map_down_factor: expected 1 or more, got " +
                         std::to_string(view.range_step));
    }
}

/// Allocates the images and points `targets` at them. A name that comes twice counts once.
std::vector<Rendering> make_images(std::vector<std::string> const& names, RenderOptions const& view,
                                   bool colored, Targets& targets) {
    std::vector<Rendering> images;
    for (std::string const& name : names) {
        Kind const& kind = kind_of(name, colored);
        bool const again = std::any_of(images.begin(), images.end(),
                                       [&](Rendering const& one) { return one.name == name; });
        if (again) continue;
        images.push_back(
            {name, Tensor::zeros({view.height, view.width, kind.channels}, kind.dtype)});
        kind.aim(targets, images.back().image.data());
    }
    return images;
}

}  // namespace

std::vector<Rendering> ray_cast(VoxelBlockGrid const& grid, Tensor const& blocks,
                                Camera const& camera, RenderOptions const& view,
                                DepthRange const& range, std::vector<std::string> const& names) {
    check_range(range);
    check_view(view);
    Tensor const keys = check_blocks(blocks);
    BlockBuffers const buffers(grid);
    Pinhole const pinhole = to_pinhole(camera.intrinsic, "intrinsic");
    Rigid const pose = to_rigid(camera.extrinsic, "extrinsic");
    Rigid const back = to_inverse(camera.extrinsic, "extrinsic");
    Targets targets;
    auto images = make_images(names, view, static_cast<bool>(buffers.color), targets);
    Tensor const ranges = depth_ranges(grid.scale, keys, pinhole, pose, view, range);

    BlockLookup const lookup(grid.map);
    RayCaster const caster(buffers, lookup,
                           buffers.voxel_size * static_cast<float>(range.truncation),
                           static_cast<float>(view.weight_threshold));
    PixelWriter const writer(targets, caster, pose, static_cast<float>(range.scale));
    auto const width = static_cast<std::size_t>(view.width);
    auto const step = static_cast<std::size_t>(view.range_step);
    auto const squares = static_cast<std::size_t>(ranges.shape()[1]);
    auto const* const bounds = static_cast<float const*>(ranges.data());
    Vec3 const origin = back.translation();
    // One task per row of pixels, for few divisions.
    runtime::run_tasks(static_cast<std::size_t>(view.height), [&](std::size_t y) {
        float const* const row = bounds + 2 * (y / step * squares);
        for (std::size_t x = 0; x < width; ++x) {
            float const* const bound = row + 2 * (x / step);
            Vec3 const p =
                back.apply(pinhole.unproject({static_cast<float>(x), static_cast<float>(y)}));
            Vec3 const direction{p.x - origin.x, p.y - origin.y, p.z - origin.z};
            auto const hit = caster.cast(origin, direction, bound[0], bound[1]);
            if (hit) writer.write(y * width + x, *hit);
        }
    });
    images.insert(images.begin(), {"range", ranges});
    return images;
}

}  // namespace tensorhash::geometry
