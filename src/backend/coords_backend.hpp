// CoordsBackend: what a device implements for coordinates. Every call takes a whole batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/coord_rows.hpp"
#include "backend/kernel_map_request.hpp"
#include "tensorhash/coords/types.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::backend {

/// How stores differ. Fixed for the life of a store, except that it may drop its capacity.
struct CoordStoreRules {
    bool double_hash = false;
    std::optional<std::uint64_t> slots{};  // a power of two; more distinct rows are refused
    bool published_hash = false;           // packed keys use Splitmix64Hash, without a seed
    std::optional<std::uint64_t> seed{};   // if absent, the store draws one
    RowRange range = RowRange::Int32;      // insert and expand refuse rows outside it
};

/// What a store knows about itself without reading its rows.
struct CoordStoreInfo {
    std::uint64_t entries = 0;   // rows, duplicates included
    std::uint64_t distinct = 0;  // distinct rows
    std::uint64_t slots = 0;     // for wide keys, the number that packed keys would have
    std::uint32_t columns = 0;   // 0 until they are set
    coords::CoordKey key = coords::CoordKey::Packed64;
    bool grows = false;
};

/// Read-only views of the slots of packed keys, 16 bytes apart: key and row.
struct CoordSlots {
    Tensor keys;  // int64 [slots], 0 where empty
    Tensor rows;  // int32 [slots], -1 where empty
};

/// The rows of one table in order of insertion, and an index over them. The caller checks dtype,
/// shape and device, and holds the lock: many readers or one writer. A call that throws changes
/// nothing.
class CoordStore {
public:
    virtual ~CoordStore() = default;

    virtual CoordStoreInfo info() const noexcept = 0;
    /// Sets the number of columns of a store that has none.
    virtual void set_columns(std::uint32_t columns) = 0;

    /// Appends one or more rows. Throws a ValueError that names `argument` if a number is out of
    /// range, TableFull if a store of fixed capacity has no room.
    virtual void insert(CoordRows const& rows, std::string_view argument) = 0;
    /// Appends the rows base[n] + offsets[k] that are new, offset by offset. Neither is empty.
    virtual void expand(CoordRows const& base, CoordRows const& offsets) = 0;
    /// Removes all rows. Capacity and columns stay. Views keep their contents.
    virtual void clear() = 0;
    /// Lets a store of fixed capacity grow from now on.
    virtual void grow_on_demand() noexcept = 0;

    /// int32 [M]: the first row equal to each query, or -1, also for queries out of range.
    virtual Tensor search(CoordRows const& queries, coords::SearchMode mode) const = 0;
    /// int32 [K, M]: the first row equal to queries[m] + offsets[k], or -1.
    virtual Tensor search(CoordRows const& queries, CoordRows const& offsets) const = 0;
    /// The hierarchical map from the store's rows, as `request.in`, to `request.out`. The store has
    /// four columns, or none yet. Of equal rows the first counts.
    virtual KernelMapPairs kernel_map(KernelMapRequest const& request) const = 0;

    /// int32 [entries, columns]: a view that later calls do not change.
    virtual Tensor rows() const = 0;
    /// int32 [distinct]: the first row of each key, ascending.
    virtual Tensor unique() const = 0;
    /// Empty if the keys are wider than 64 bits.
    virtual std::optional<CoordSlots> slots() const = 0;
};

/// What a vector store knows about itself without reading its rows.
struct VectorStoreInfo {
    std::uint64_t entries = 0;   // rows, duplicates included
    std::uint64_t distinct = 0;  // distinct rows
    std::uint64_t slots = 0;
    std::uint32_t columns = 0;  // 0 until they are set
    bool grows = false;
};

/// The rows of a TorchHashTable: of any number of columns, hashed with Murmur. Otherwise as
/// CoordStore.
class VectorStore {
public:
    virtual ~VectorStore() = default;

    virtual VectorStoreInfo info() const noexcept = 0;
    /// Sets the number of columns of a store that has none.
    virtual void set_columns(std::uint32_t columns) = 0;
    /// Appends one or more rows. Throws a ValueError that names vec_keys if a number does not fit
    /// int32, TableFull if a store of fixed capacity has no room.
    virtual void insert(CoordRows const& rows) = 0;
    /// Lets a store of fixed capacity grow from now on. It keeps the slots that it has.
    virtual void grow_on_demand() noexcept = 0;

    /// int32 [M]: the first row equal to each query, or -1, also for queries out of range.
    virtual Tensor search(CoordRows const& queries) const = 0;
    /// int32 [entries, columns]: a view that later calls do not change.
    virtual Tensor rows() const = 0;
    /// int32 [distinct]: the first row of each key, ascending.
    virtual Tensor unique() const = 0;
    /// int32 [slots, 2]: a copy of the slots, their own number and the row, or -1 and -1.
    virtual Tensor slots() const = 0;
};

/// A radius search. A cloud has float or integer points [N, D] and may have a batch index per
/// point, of any integer dtype.
struct RadiusRequest {
    coords::Cloud points;
    coords::Cloud queries;
    double radius = 0;
    std::optional<std::int64_t> max_neighbors{};
};

/// Points [N, D], and one voxel size and origin per axis. `dtype` is that of the result.
struct VoxelizeRequest {
    Tensor points;
    std::vector<double> voxel_size;
    std::vector<double> origin;
    std::optional<Tensor> batch{};
    Dtype dtype = Dtype::Int32;
};

/// The coordinate operations of one device. Stateless: any thread may call it. The public functions
/// check dtypes, shapes and devices first; the back end checks numbers.
class CoordsBackend {
public:
    virtual ~CoordsBackend() = default;

    /// An empty store. `columns` may be 0: then the first batch sets them.
    virtual std::unique_ptr<CoordStore> make_store(CoordStoreRules const& rules,
                                                   std::uint32_t columns) const = 0;

    /// An empty store with this many slots, a power of two; without a number it grows.
    virtual std::unique_ptr<VectorStore> make_vectors(std::optional<std::uint64_t> slots) const = 0;

    /// The distinct rows among `coords` and their sums with int64 offsets [K, D]. Computes
    /// `chunk_rows` sums at a time. Without `batches`, the largest batch index is the last.
    virtual coords::BatchedCoords expand(CoordRows const& coords,
                                         std::span<std::int64_t const> offsets,
                                         std::size_t chunk_rows,
                                         std::optional<std::int64_t> batches) const = 0;
    /// The distinct rows after every axis is divided by its stride and rounded down.
    virtual coords::BatchedCoords stride(CoordRows const& coords,
                                         std::span<std::int64_t const> stride,
                                         std::optional<std::int64_t> batches) const = 0;

    virtual KernelMapPairs kernel_map(KernelMapRequest const& request) const = 0;

    /// The voxel of each point: `request.dtype` [N, D], or [N, 1 + D] with a batch.
    virtual Tensor voxelize(VoxelizeRequest const& request) const = 0;
    /// The mean of the points of each voxel, in order of first occurrence, in one pass. Empty if
    /// the back end cannot do it in one pass; then the caller voxelizes, numbers and reduces.
    virtual std::optional<Tensor> voxel_means(VoxelizeRequest const&) const { return {}; }
    /// Reduces the rows of `values` [N, ...] that share a voxel; `inverse` is int64 [N].
    virtual Tensor reduce_voxels(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                                 coords::VoxelReduce reduce) const = 0;

    // These pick a row of each voxel: int64 [voxels].

    /// The row nearest to the centre of the voxel; of equally near ones the first. `request` has no
    /// batch.
    virtual Tensor rows_near_centers(VoxelizeRequest const& request, Tensor const& inverse,
                                     std::int64_t voxels) const = 0;
    /// The row nearest to the mean of the points.
    virtual Tensor rows_near_centroids(Tensor const& points, Tensor const& inverse,
                                       std::int64_t voxels) const = 0;
    /// The first row with the most frequent label. Labels are integers or bools, one per row.
    virtual Tensor rows_of_modes(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                                 Tensor const& inverse, std::int64_t voxels) const = 0;

    virtual coords::Neighbors radius(RadiusRequest const& request) const = 0;
};

}  // namespace tensorhash::backend
