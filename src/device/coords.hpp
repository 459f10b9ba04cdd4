// Coords: the CoordsBackend of a device, over a queue. Results have the bits of the CPU's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "backend/coords_backend.hpp"
#include "device/batched_rows.hpp"
#include "device/coord_store.hpp"
#include "device/kernel_maps.hpp"
#include "device/radius.hpp"
#include "device/vector_store.hpp"
#include "device/voxelize.hpp"

namespace tensorhash::device {

template <class Queue>
class Coords final : public backend::CoordsBackend {
public:
    /// A kernel map keeps its lookups in at most this much memory, unless one offset needs more.
    static constexpr std::uint64_t kMapLimit = std::uint64_t{256} << 20;

    /// The queue must outlive the stores and their views.
    Coords(Queue& queue, Device device, std::uint64_t map_limit = kMapLimit)
        : queue_(&queue), device_(device), map_limit_(map_limit) {}

    std::unique_ptr<backend::CoordStore> make_store(backend::CoordStoreRules const& rules,
                                                    std::uint32_t columns) const override {
        return std::make_unique<CoordStore<Queue>>(*queue_, device_, rules, columns, map_limit_);
    }
    std::unique_ptr<backend::VectorStore> make_vectors(
        std::optional<std::uint64_t> slots) const override {
        return std::make_unique<VectorStore<Queue>>(*queue_, device_, slots);
    }
    coords::BatchedCoords expand(CoordRows const& coords, std::span<std::int64_t const> offsets,
                                 std::size_t chunk_rows,
                                 std::optional<std::int64_t> batches) const override {
        return BatchedRows<Queue>(*queue_, device_, coords, batches).expand(offsets, chunk_rows);
    }
    coords::BatchedCoords stride(CoordRows const& coords, std::span<std::int64_t const> stride,
                                 std::optional<std::int64_t> batches) const override {
        return BatchedRows<Queue>(*queue_, device_, coords, batches).divide(stride);
    }
    KernelMapPairs kernel_map(KernelMapRequest const& request) const override {
        return MapMaker<Queue>(*queue_, device_, request, map_limit_).make();
    }
    Tensor voxelize(backend::VoxelizeRequest const& request) const override {
        return quantize(*queue_, device_, request);
    }
    Tensor reduce_voxels(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                         coords::VoxelReduce reduce) const override {
        return reduce_by_voxel(*queue_, device_, values, inverse, voxels, reduce);
    }
    Tensor rows_near_centers(backend::VoxelizeRequest const& request, Tensor const& inverse,
                             std::int64_t voxels) const override {
        return nearest_centers(*queue_, device_, request, inverse, voxels);
    }
    Tensor rows_near_centroids(Tensor const& points, Tensor const& inverse,
                               std::int64_t voxels) const override {
        return nearest_centroids(*queue_, device_, points, inverse, voxels);
    }
    Tensor rows_of_modes(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                         Tensor const& inverse, std::int64_t voxels) const override {
        return mode_rows(*queue_, device_, labels, ignore_label, inverse, voxels);
    }
    coords::Neighbors radius(backend::RadiusRequest const& request) const override {
        return RadiusSearch<Queue>(*queue_, device_, request).find();
    }

private:
    Queue* queue_;
    Device device_;
    std::uint64_t map_limit_;
};

}  // namespace tensorhash::device
