// Prepares the rows of a request and chooses the path that finds its pairs.
#include <algorithm>
#include <utility>
#include <vector>

#include "coords/kernel_map/paths.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

/// Reports the smallest row that repeats another, as every path does.
[[noreturn]] void fail_repeated_in_index(CoordIndex const& index) {
    std::vector<std::int32_t> first(index.rows().rows);
    index.find(index.rows(), first.data());
    std::size_t row = 0;
    while (first[row] == static_cast<std::int32_t>(row)) {
        ++row;
    }
    backend::fail_repeated(row, static_cast<std::size_t>(first[row]));
}

KernelMapPairs probe_index(KernelMapRequest const& request) {
    CoordIndex const index(request.in);
    bool const repeated = index.distinct() < request.in.rows;
    if (repeated && request.duplicates == Duplicates::Refuse) {
        fail_repeated_in_index(index);
    }
    KernelMapPairs pairs = request.strategy == Strategy::Flat
                               ? flat_kernel_map(request, index)
                               : hierarchical_kernel_map(request, index);
    pairs.repeated = repeated;
    pairs.strategy = request.strategy;
    return pairs;
}

KernelMapPairs merge(KernelMapRequest const& request) {
    KernelMapRequest own = request;
    if (request.out_by_slabs) {
        own.out = narrowed_copy(request.out, request.out_name);
        own.out_by_slabs = false;
    }
    KernelMapPairs pairs = merge_kernel_map(own);
    pairs.strategy = Strategy::Merge;
    return pairs;
}

/// Measured: blocks are fastest wherever they apply, merging everywhere else. See decision 8.
KernelMapPairs find_fastest(KernelMapRequest const& request) {
    if (request.in.rows > 0 && backend::blocks_take(request)) {
        if (auto pairs = blocks_kernel_map(request)) {
            pairs->strategy = Strategy::Blocks;
            return std::move(*pairs);
        }
    }
    return merge(request);
}

KernelMapPairs find_by_blocks(KernelMapRequest const& request) {
    if (request.in.rows == 0) {
        KernelMapPairs none = merge_kernel_map(request);  // blocks need at least one row
        none.strategy = Strategy::Blocks;
        return none;
    }
    if (auto pairs = blocks_kernel_map(request)) {
        pairs->strategy = Strategy::Blocks;
        return std::move(*pairs);
    }
    throw ValueError(
        "in_coords: the blocks path takes denser coordinates: these fill too little of their "
        "bounding box; use the strategy merge or the default");
}

/// The queries that fit int32, and their row numbers. The other queries have no pairs.
struct RowsInside {
    CoordRows rows{};
    std::vector<std::int32_t> numbers{};  // empty if all rows are inside
};

RowsInside copy_rows_inside(CoordRows const& queries) {
    NarrowQueries narrow = narrow_queries(queries);
    if (narrow.outside.empty()) {
        if (!queries.wide()) narrow.rows.tensor = narrow.rows.tensor.clone();
        return {std::move(narrow.rows), {}};
    }
    RowsInside inside;
    std::size_t const count = queries.rows - narrow.outside.size();
    Tensor kept = Tensor::empty({static_cast<std::int64_t>(count), queries.columns}, Dtype::Int32);
    auto* to = static_cast<std::int32_t*>(kept.data());
    auto skip = narrow.outside.begin();
    for (std::size_t row = 0; row < queries.rows; ++row) {
        if (skip != narrow.outside.end() && *skip == row) {
            ++skip;
            continue;
        }
        to = std::copy_n(row_of(narrow.rows, row), queries.columns, to);
        inside.numbers.push_back(static_cast<std::int32_t>(row));
    }
    inside.rows = {std::move(kept), count, queries.columns};
    return inside;
}

/// Out rows that are the in rows need no slabs: they are found without a list of their own.
bool takes_slabs(KernelMapRequest const& request) {
    bool const blocks =
        request.strategy == Strategy::Blocks || request.strategy == Strategy::Fastest;
    return blocks && backend::blocks_take(request) && request.out.rows > kSlabRows &&
           request.out.rows != request.in.rows;
}

}  // namespace

CoordRows copy_slab(CoordRows const& rows, std::size_t first, std::size_t count,
                    std::string_view argument) {
    std::size_t const row_bytes = rows.columns * byte_size(rows.tensor.dtype());
    void const* const data =
        static_cast<unsigned char const*>(rows.tensor.data()) + first * row_bytes;
    Tensor const view =
        Tensor::borrow(data, {static_cast<std::int64_t>(count), rows.columns}, rows.tensor.dtype());
    return narrowed_copy({view, count, rows.columns}, argument);
}

KernelMapRequest own_rows_of(KernelMapRequest const& request) {
    KernelMapRequest own = request;
    CoordRows const& in = request.in;
    CoordRows const& out = request.out;
    own.in = narrowed_copy(in, "in_coords");
    bool const one_array =
        in.tensor.data() == out.tensor.data() && in.rows == out.rows && in.wide() == out.wide();
    own.out_by_slabs = takes_slabs(request);
    if (own.out_by_slabs) {
        if (!all_in_range(out, RowRange::Int32)) narrowed(out, request.out_name);  // throws
    } else {
        own.out = one_array ? own.in : narrowed_copy(out, request.out_name);
        own.equal = same_rows(own.in, own.out);
    }
    if (own.groups < own.all) {
        backend::check_skip_symmetric(own);
    }
    return own;
}

Shift shift_of(KernelMapRequest const& request, std::size_t k) noexcept {
    Shift shift;
    for (std::size_t axis = 0; axis < request.axes; ++axis) {
        shift.scale[axis + 1] = static_cast<std::int32_t>(request.stride[axis]);
        shift.offset[axis + 1] = request.offset(k)[axis];
    }
    return shift;
}

KernelMapPairs find_pairs(KernelMapRequest const& request) {
    KernelMapPairs pairs;
    switch (request.strategy) {
        case Strategy::Blocks:
            pairs = find_by_blocks(request);
            break;
        case Strategy::Merge:
            pairs = merge(request);
            break;
        case Strategy::Flat:
        case Strategy::Hierarchical:
            pairs = probe_index(request);
            break;
        case Strategy::WarpConvNet:  // the public function chose Flat or Hierarchical
        case Strategy::Fastest:
            pairs = find_fastest(request);
            break;
    }
    pairs.equal = request.equal;
    return pairs;
}

KernelMapPairs find_pairs_in(CoordIndex const& index, KernelMapRequest const& request) {
    RowsInside inside = copy_rows_inside(request.out);
    bool const all = inside.rows.rows == request.out.rows;
    KernelMapRequest own = request;
    own.in = index.rows();
    own.out = std::move(inside.rows);
    own.equal = all && same_rows(own.in, own.out);
    KernelMapPairs pairs = hierarchical_kernel_map(own, index);
    pairs.strategy = Strategy::Hierarchical;
    pairs.equal = own.equal;
    pairs.repeated = index.distinct() < index.rows().rows;
    if (!all) {
        for (std::int32_t& row : pairs.out_maps.as_mutable<std::int32_t>()) {
            row = inside.numbers[static_cast<std::size_t>(row)];
        }
    }
    return pairs;
}

}  // namespace tensorhash::coords
