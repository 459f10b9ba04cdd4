// Coords: the CoordsBackend of a device, over a queue. Results have the bits of the CPU's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "backend/coords_backend.hpp"
#include "device/batched_rows.hpp"
#include "device/coord_store.hpp"
#include "device/kernel_maps.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::device {

/// Throws DeviceError: `verb` runs on the CPU only.
[[noreturn]] inline void refuse(Device device, std::string const& argument,
                                std::string const& verb) {
    throw DeviceError(argument + ": expected memory of the CPU, got memory of \"" +
                      to_string(device) + "\"; " + verb + " a copy made with .cpu()");
}

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
    Tensor voxelize(backend::VoxelizeRequest const&) const override {
        refuse(device_, "points", "voxelize");
    }
    Tensor reduce_voxels(Tensor const&, Tensor const&, std::int64_t,
                         coords::VoxelReduce) const override {
        refuse(device_, "features", "reduce");
    }
    coords::Neighbors radius(backend::RadiusRequest const&) const override {
        refuse(device_, "points", "search");
    }

private:
    Queue* queue_;
    Device device_;
    std::uint64_t map_limit_;
};

}  // namespace tensorhash::device
