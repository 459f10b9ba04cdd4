// Finds where rays meet the surface: a ray steps by the distance that its voxel stores until the
// sign changes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "geometry/block_lookup.hpp"
#include "geometry/blocks.hpp"
#include "geometry/camera.hpp"

namespace tensorhash::geometry {

inline constexpr std::size_t kCorners = 8;

/// What a ray found around a point on the surface: its eight voxels and their shares.
struct Corners {
    std::array<bool, kCorners> mask{};
    std::array<std::int64_t, kCorners> index{};
    std::array<float, kCorners> share{};
    std::array<std::array<float, kCorners>, 3> slope{};  // of the shares, per axis
};

/// Where a ray meets the surface. Depth is t, because the direction has depth 1.
struct Hit {
    float t;
    Vec3 point;
};

/// Remembers the last block: most lookups need it again.
class CachedLookup {
public:
    explicit CachedLookup(BlockLookup const& lookup) : lookup_(lookup) {}
    std::int32_t find(BlockKey const& key) noexcept {
        if (!has_key_ || key != key_) {
            key_ = key;
            index_ = lookup_.find(key);
            has_key_ = true;
        }
        return index_;
    }

private:
    BlockLookup const& lookup_;
    BlockKey key_{};
    std::int32_t index_ = BlockLookup::kNoBlock;
    bool has_key_ = false;
};

inline std::int32_t to_block(float x, float block_size) noexcept {
    return static_cast<std::int32_t>(
        std::clamp(std::floor(x / block_size), -2147483648.0f, 2147483520.0f));
}

class RayCaster {
public:
    RayCaster(BlockBuffers const& blocks, BlockLookup const& lookup, float truncation,
              float threshold)
        : blocks_(blocks), lookup_(lookup), truncation_(truncation), threshold_(threshold),
          block_size_(blocks.voxel_size * static_cast<float>(blocks.resolution)) {}

    std::optional<Hit> cast(Vec3 origin, Vec3 direction, float t, float last) const noexcept {
        CachedLookup lookup(lookup_);
        float before = t;
        float previous = 0;
        float distance = 1.0f;
        while (t < last) {
            Vec3 const p = along(origin, direction, t);
            auto const voxel = voxel_at(p, lookup);
            if (!voxel) {
                before = t;
                t += block_size_;
                if (!(t > before)) break;  // the step is below the precision of float32
                continue;
            }
            previous = distance;
            distance = blocks_.distance(*voxel);
            // The weight comes last: reading it costs a cache miss.
            if (distance <= 0 && previous > 0 && blocks_.weight[*voxel] >= threshold_) {
                float const hit = (t * previous - before * distance) / (previous - distance);
                return Hit{hit, along(origin, direction, hit)};
            }
            before = t;
            t += std::max(distance * truncation_, blocks_.voxel_size);
            if (!(t > before)) break;
        }
        return std::nullopt;
    }

    /// The voxels around a point that were observed; nothing if its block is not in use.
    std::optional<Corners> corners(Vec3 p) const noexcept {
        BlockKey const key = key_of(p);
        CachedLookup lookup(lookup_);
        std::int32_t const block = lookup.find(key);
        if (block == BlockLookup::kNoBlock) return std::nullopt;
        std::array<float, 3> const in{inside(p.x, key[0]), inside(p.y, key[1]),
                                      inside(p.z, key[2])};
        std::array<int, 3> first{};
        std::array<float, 3> ratio{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            first[axis] = static_cast<int>(std::floor(in[axis]));
            ratio[axis] = in[axis] - static_cast<float>(first[axis]);
        }
        Corners out;
        int const last = blocks_.resolution - 2;
        bool const in_one_block = first[0] >= 0 && first[0] <= last && first[1] >= 0 &&
                                  first[1] <= last && first[2] >= 0 && first[2] <= last;
        for (std::size_t k = 0; k < kCorners; ++k) {
            std::array<int, 3> at = corner(first, k);
            std::int32_t const owner = in_one_block ? block : lookup.find(wrap(key, at));
            if (owner != BlockLookup::kNoBlock) fill_corner(voxel_of(owner, at), ratio, k, out);
        }
        return out;
    }

    BlockBuffers const& blocks() const noexcept { return blocks_; }

private:
    static Vec3 along(Vec3 origin, Vec3 direction, float t) noexcept {
        return {origin.x + t * direction.x, origin.y + t * direction.y, origin.z + t * direction.z};
    }
    BlockKey key_of(Vec3 p) const noexcept {
        return {to_block(p.x, block_size_), to_block(p.y, block_size_), to_block(p.z, block_size_)};
    }
    /// The position in a block, in voxels.
    float inside(float x, std::int32_t key) const noexcept {
        return (x - static_cast<float>(key) * block_size_) / blocks_.voxel_size;
    }
    std::size_t voxel_of(std::int32_t block, std::array<int, 3> const& at) const noexcept {
        int const r = blocks_.resolution;
        return static_cast<std::size_t>(block) * blocks_.voxels +
               static_cast<std::size_t>((at[2] * r + at[1]) * r + at[0]);
    }

    std::optional<std::size_t> voxel_at(Vec3 p, CachedLookup& lookup) const noexcept {
        BlockKey const key = key_of(p);
        std::int32_t const block = lookup.find(key);
        if (block == BlockLookup::kNoBlock) return std::nullopt;
        // Rounding can put a point one voxel outside of its block.
        auto const place = [&](float x, std::int32_t k) {
            return std::clamp(static_cast<int>(inside(x, k)), 0, blocks_.resolution - 1);
        };
        return voxel_of(block, {place(p.x, key[0]), place(p.y, key[1]), place(p.z, key[2])});
    }

    static std::array<int, 3> corner(std::array<int, 3> const& first, std::size_t k) noexcept {
        int const i = static_cast<int>(k);
        return {first[0] + (i & 1), first[1] + (i >> 1 & 1), first[2] + (i >> 2 & 1)};
    }

    /// The block of a voxel that may lie outside of block `key`. Moves `at` into that block.
    BlockKey wrap(BlockKey key, std::array<int, 3>& at) const noexcept {
        int const r = blocks_.resolution;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            int const beyond = at[axis] < 0 ? -1 : at[axis] >= r ? 1 : 0;
            // Wraps at the ends of int32: no block is there.
            key[axis] = static_cast<std::int32_t>(static_cast<std::uint32_t>(key[axis]) +
                                                  static_cast<std::uint32_t>(beyond));
            at[axis] -= beyond * r;
        }
        return key;
    }

    void fill_corner(std::size_t voxel, std::array<float, 3> const& ratio, std::size_t k,
                     Corners& out) const noexcept {
        if (!(blocks_.weight[voxel] > 0)) return;
        std::array<float, 3> part{};
        std::array<float, 3> sign{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            bool const side = (k >> axis & 1) != 0;
            part[axis] = side ? ratio[axis] : 1 - ratio[axis];
            sign[axis] = side ? 1.0f : -1.0f;
        }
        out.mask[k] = true;
        out.index[k] = static_cast<std::int64_t>(voxel);
        out.share[k] = part[0] * part[1] * part[2];
        out.slope[0][k] = part[1] * part[2] * sign[0];
        out.slope[1][k] = part[0] * part[2] * sign[1];
        out.slope[2][k] = part[0] * part[1] * sign[2];
    }

    BlockBuffers const& blocks_;
    BlockLookup const& lookup_;
    float truncation_;
    float threshold_;
    float block_size_;
};

}  // namespace tensorhash::geometry
