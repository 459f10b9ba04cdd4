// The blocks near a surface, from a depth image or from points.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "coords/api/arguments.hpp"
#include "coords/neighbours/points.hpp"
#include "geometry/blocks.hpp"
#include "geometry/camera.hpp"
#include "geometry/images.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

using Key = std::array<std::int32_t, 3>;

constexpr std::size_t kPixelStep = 4;  // neighbouring pixels almost always touch the same blocks
constexpr int kSegments = 3;           // of the piece of a ray within the truncation

/// The number of the block of a coordinate. Beyond int32 it is an error, found at the end.
struct BlockNumber {
    float block_size;

    float operator()(float x) const noexcept { return std::floor(x / block_size); }
    static bool fits(float number) noexcept {
        return number >= -2147483648.0f && number < 2147483648.0f;
    }
};

/// Blocks in the order of their first occurrence, with few repetitions.
class TouchedBlocks {
public:
    void add(Key const& key) {
        std::size_t& recent = recent_[slot(key)];
        if (recent != 0 && std::equal(key.begin(), key.end(), rows.begin() + at(recent))) return;
        rows.insert(rows.end(), key.begin(), key.end());
        recent = rows.size() / 3;
    }
    void add(float x, float y, float z) {
        if (BlockNumber::fits(x) && BlockNumber::fits(y) && BlockNumber::fits(z)) {
            add({static_cast<std::int32_t>(x), static_cast<std::int32_t>(y),
                 static_cast<std::int32_t>(z)});
        } else {
            outside = true;
        }
    }

    std::vector<std::int32_t> rows;
    bool outside = false;

private:
    static constexpr std::size_t kRecent = 1024;

    static std::size_t slot(Key const& key) noexcept {
        auto const x = static_cast<std::uint32_t>(key[0]);
        auto const y = static_cast<std::uint32_t>(key[1]);
        auto const z = static_cast<std::uint32_t>(key[2]);
        return (x + 11 * y + 121 * z) % kRecent;
    }
    static std::ptrdiff_t at(std::size_t recent) noexcept {
        return static_cast<std::ptrdiff_t>(3 * (recent - 1));
    }

    std::vector<std::size_t> recent_ = std::vector<std::size_t>(kRecent);  // 1 + row; 0 for none
};

/// Runs body(begin, end, blocks) over all items and joins the blocks of all chunks.
template <class Body>
Tensor collect(std::size_t items, std::size_t grain, Body&& body) {
    auto const chunks = runtime::cut(items, grain);
    std::vector<TouchedBlocks> found(std::max<std::size_t>(1, chunks.count));
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        body(begin, end, found[chunk]);
    });
    std::vector<std::int32_t> rows;
    for (TouchedBlocks const& part : found) {
        if (part.outside) fail_blocks_outside();
        rows.insert(rows.end(), part.rows.begin(), part.rows.end());
    }
    auto const count = static_cast<std::int64_t>(rows.size() / 3);
    return unique(Tensor::from(rows, {count, 3}), {false, false, false}).rows;
}

/// The ray of a pixel: origin + t * direction has depth t.
struct Ray {
    Vec3 origin;
    Vec3 direction;

    Ray(Rigid const& pose, Pinhole const& pinhole, Pixel pixel) : origin(pose.translation()) {
        Vec3 const at = pose.apply(pinhole.unproject(pixel));
        direction = {at.x - origin.x, at.y - origin.y, at.z - origin.z};
    }
};

struct DepthTouch {
    Image const& image;
    Pinhole pinhole;
    Rigid pose;
    BlockNumber number;
    float truncation;
    float max;

    void pixel(std::size_t x, std::size_t y, TouchedBlocks& blocks) const {
        float const depth = image.numbers[y * image.width + x];
        if (!(depth > 0) || depth >= max) return;
        Ray const ray(pose, pinhole, {static_cast<float>(x), static_cast<float>(y)});
        float const first = std::max(depth - truncation, 0.0f);
        float const last = std::min(depth + truncation, max);
        float const step = (last - first) / kSegments;
        float t = first;
        for (int i = 0; i <= kSegments; ++i, t += step) {
            blocks.add(number(ray.origin.x + t * ray.direction.x),
                       number(ray.origin.y + t * ray.direction.y),
                       number(ray.origin.z + t * ray.direction.z));
        }
    }
};

float block_size_of(BlockScale scale) noexcept {
    return static_cast<float>(scale.voxel_size) * static_cast<float>(scale.resolution);
}

void touch_box(BlockNumber number, double const* point, float reach, TouchedBlocks& blocks) {
    std::array<std::int64_t, 3> low{};
    std::array<std::int64_t, 3> high{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        auto const x = static_cast<float>(point[axis]);
        float const first = number(x - reach);
        float const last = number(x + reach);
        if (!BlockNumber::fits(first) || !BlockNumber::fits(last)) {
            blocks.outside = true;
            return;
        }
        low[axis] = static_cast<std::int64_t>(first);
        high[axis] = static_cast<std::int64_t>(last);
    }
    for (std::int64_t x = low[0]; x <= high[0]; ++x) {
        for (std::int64_t y = low[1]; y <= high[1]; ++y) {
            for (std::int64_t z = low[2]; z <= high[2]; ++z) {
                blocks.add({static_cast<std::int32_t>(x), static_cast<std::int32_t>(y),
                            static_cast<std::int32_t>(z)});
            }
        }
    }
}

}  // namespace

Tensor touched_blocks(BlockScale scale, Tensor const& depth, Camera const& camera,
                      DepthRange const& range) {
    check_scale(scale);
    check_range(range);
    Image const image = to_depth(depth, range.scale);
    DepthTouch const touch{
        image,
        to_pinhole(camera.intrinsic, "intrinsic"),
        to_inverse(camera.extrinsic, "extrinsic"),
        {block_size_of(scale)},
        static_cast<float>(scale.voxel_size) * static_cast<float>(range.truncation),
        static_cast<float>(range.max)};
    std::size_t const columns = image.width / kPixelStep;
    std::size_t const rows = image.height / kPixelStep;
    return collect(rows * columns, 1024,
                   [&](std::size_t begin, std::size_t end, TouchedBlocks& blocks) {
                       for (std::size_t i = begin; i < end; ++i) {
                           touch.pixel(i % columns * kPixelStep, i / columns * kPixelStep, blocks);
                       }
                   });
}

Tensor touched_blocks(BlockScale scale, Tensor const& points, double truncation) {
    check_scale(scale);
    check_range({1, 1, truncation, 0});
    coords::check_points(points, "points");
    coords::Points const rows = coords::to_points(points, "points");
    if (rows.axes != 3) {
        throw ValueError("points: expected shape (N, 3), got " + to_string(points.shape()));
    }
    BlockNumber const number{block_size_of(scale)};
    float const reach = static_cast<float>(scale.voxel_size) * static_cast<float>(truncation);
    return collect(rows.rows, 1024, [&](std::size_t begin, std::size_t end, TouchedBlocks& blocks) {
        for (std::size_t i = begin; i < end; ++i) {
            touch_box(number, rows.row(i), reach, blocks);
        }
    });
}

}  // namespace tensorhash::geometry
