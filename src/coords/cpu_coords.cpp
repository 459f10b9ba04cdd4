// The CoordsBackend of the CPU. It forwards each call to a folder of src/coords.
#include "table/cpu_coords.hpp"
#include "backend/coords_backend.hpp"
#include "coords/kernel_map/paths.hpp"
#include "coords/neighbours/search.hpp"
#include "coords/rows/expand_rows.hpp"
#include "coords/tables/cpu_coord_store.hpp"
#include "coords/tables/cpu_vector_store.hpp"
#include "coords/voxels/voxels.hpp"

namespace tensorhash::coords {
namespace {

/// Adds kernel_map() to the store here, because tables/ must not include kernel_map/.
class MappedCoordStore final : public CpuCoordStore {
public:
    using CpuCoordStore::CpuCoordStore;

    KernelMapPairs kernel_map(KernelMapRequest const& request) const override {
        if (index() != nullptr) {
            return find_pairs_in(*index(), request);
        }
        return find_pairs_in(CoordIndex(RowBuffer(request.out.columns).rows()), request);
    }
};

class CpuCoords final : public backend::CoordsBackend {
public:
    std::unique_ptr<backend::CoordStore> make_store(backend::CoordStoreRules const& rules,
                                                    std::uint32_t columns) const override {
        return std::make_unique<MappedCoordStore>(rules, columns);
    }
    std::unique_ptr<backend::VectorStore> make_vectors(
        std::optional<std::uint64_t> slots) const override {
        return std::make_unique<CpuVectorStore>(slots);
    }
    BatchedCoords expand(CoordRows const& coords, std::span<std::int64_t const> offsets,
                         std::size_t chunk_rows,
                         std::optional<std::int64_t> batches) const override {
        return expand_rows(coords, offsets, chunk_rows, batches);
    }
    BatchedCoords stride(CoordRows const& coords, std::span<std::int64_t const> stride,
                         std::optional<std::int64_t> batches) const override {
        return stride_rows(coords, stride, batches);
    }
    KernelMapPairs kernel_map(KernelMapRequest const& request) const override {
        return find_pairs(own_rows_of(request));
    }
    Tensor voxelize(backend::VoxelizeRequest const& request) const override {
        return quantize_points(request);
    }
    std::optional<Tensor> voxel_means(backend::VoxelizeRequest const& request) const override {
        return mean_points(request);
    }
    Tensor reduce_voxels(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                         VoxelReduce reduce) const override {
        return reduce_rows(values, inverse, voxels, reduce);
    }
    Tensor rows_near_centers(backend::VoxelizeRequest const& request, Tensor const& inverse,
                             std::int64_t voxels) const override {
        return coords::rows_near_centers(request.points, request.voxel_size, request.origin,
                                         inverse, voxels);
    }
    Tensor rows_near_centroids(Tensor const& points, Tensor const& inverse,
                               std::int64_t voxels) const override {
        return coords::rows_near_centroids(points, inverse, voxels);
    }
    Tensor rows_of_modes(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                         Tensor const& inverse, std::int64_t voxels) const override {
        return coords::rows_of_modes(labels, ignore_label, inverse, voxels);
    }
    Neighbors radius(backend::RadiusRequest const& request) const override {
        return find_within(request);
    }
};

}  // namespace
}  // namespace tensorhash::coords

namespace tensorhash::backend {

CoordsBackend const& cpu_coords() {
    // Never freed: threads may still use it while the process exits.
    static CoordsBackend const& coords = *new tensorhash::coords::CpuCoords;
    return coords;
}

}  // namespace tensorhash::backend
