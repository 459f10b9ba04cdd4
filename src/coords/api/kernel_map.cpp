// The public kernel map functions: arguments in, a map out.
#include "tensorhash/coords/kernel_map.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "coords/api/arguments.hpp"
#include "coords/api/kernel_map_arguments.hpp"
#include "coords/api/table_impl.hpp"
#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

using backend::KernelMapPairs;
using backend::KernelMapRequest;

constexpr std::uint32_t kTableColumns = 4;  // batch, x, y, z

/// The group with offset zero, if it joins every row with itself.
std::optional<std::int64_t> identity_of(KernelMapRequest const& request,
                                        KernelMapPairs const& pairs) {
    if (!pairs.equal || !request.unstrided || !request.odd || pairs.repeated) {
        return {};
    }
    for (std::size_t k = 0; k < request.all; ++k) {
        std::int32_t const* const offset = request.offset(k);
        if (std::all_of(offset, offset + request.axes, [](std::int32_t at) { return at == 0; })) {
            return static_cast<std::int64_t>(k);
        }
    }
    return {};
}

/// `home` is where the caller's arrays are.
KernelMap make_map(KernelMapRequest const& request, std::uint64_t in_rows, KernelMapPairs&& pairs,
                   Device home) {
    if (request.groups < request.all && pairs.repeated) {
        throw ValueError(
            "skip_symmetric_kernel_map: expected distinct coordinates; a map with repeated rows is "
            "not symmetric");
    }
    KernelMap map;
    map.identity_map_index = identity_of(request, pairs);
    map.in_maps = map::deliver(std::move(pairs.in_maps), home);
    map.out_maps = map::deliver(std::move(pairs.out_maps), home);
    map.offsets = map::deliver(std::move(pairs.offsets), home);
    map.num_in = static_cast<std::int64_t>(in_rows);
    map.num_out = static_cast<std::int64_t>(request.out.rows);
    map.strategy = pairs.strategy;
    map.coarse_probes = pairs.coarse_probes;
    map.fine_probes = pairs.fine_probes;
    map.bounds = std::move(pairs.bounds);
    if (pairs.table) {
        map.table = map::deliver(std::move(*pairs.table), home);
    }
    return map;
}

KernelMap find_map(KernelMapRequest const& request) {
    Device const device = request.in.tensor.device();
    KernelMapPairs pairs = coords_backend(device).kernel_map(request);
    mark_read(request.in);
    mark_read(request.out);
    return make_map(request, request.in.rows, std::move(pairs), device);
}

}  // namespace

Strategy strategy_from_name(std::string_view name) {
    for (Strategy const strategy : {Strategy::Blocks, Strategy::Flat, Strategy::Hierarchical,
                                    Strategy::Merge, Strategy::WarpConvNet}) {
        if (coords::name(strategy) == name) {
            return strategy;
        }
    }
    throw ValueError(
        "strategy: expected \"blocks\", \"flat\", \"hierarchical\", \"merge\" or "
        "\"warpconvnet\", got \"" +
        std::string(name) + "\"");
}

std::string_view name(Strategy strategy) noexcept {
    switch (strategy) {
        case Strategy::Blocks:
            return "blocks";
        case Strategy::Flat:
            return "flat";
        case Strategy::Hierarchical:
            return "hierarchical";
        case Strategy::Merge:
            return "merge";
        case Strategy::WarpConvNet:
            return "warpconvnet";
        case Strategy::Fastest:
            break;
    }
    return "fastest";
}

Tensor kernel_offsets_from_size(Kernel const& kernel) {
    Kernel const whole = check_kernel(kernel);
    std::vector<std::int32_t> const offsets = offsets_of(whole);
    std::size_t const axes = whole.size.size();
    std::size_t const count = offsets.size() / axes;
    Tensor table = Tensor::zeros(
        {static_cast<std::int64_t>(count), static_cast<std::int64_t>(axes) + 1}, Dtype::Int32);
    auto const cells = table.as_mutable<std::int32_t>();
    for (std::size_t k = 0; k < count; ++k) {
        for (std::size_t axis = 0; axis < axes; ++axis) {
            cells[k * (axes + 1) + axis + 1] = offsets[k * axes + axis];
        }
    }
    return table;
}

KernelMap generate_kernel_map(Tensor const& in_coords, Tensor const& out_coords,
                              Shape const& stride, Kernel const& kernel,
                              KernelMapOptions const& options) {
    KernelMapRequest request = check_request(in_coords, out_coords, stride, kernel, options);
    request.table = options.pair_table;
    KernelMap map = find_map(request);
    if (options.pair_table && !map.table) {
        map.table = pair_table(map);
    }
    return map;
}

KernelMap kernel_map_from_offsets(Tensor const& in_coords, Tensor const& out_coords,
                                  Shape const& stride, Tensor const& kernel_offsets,
                                  Duplicates duplicates) {
    return find_map(
        check_offsets_request(in_coords, out_coords, stride, kernel_offsets, duplicates));
}

KernelMap kernel_map_from_size_hierarchical(CoordTableBase const& fine_ht,
                                            Tensor const& query_coords, Shape const& kernel_size,
                                            std::int64_t stride) {
    auto const guard = fine_ht.impl_->reading();
    backend::CoordStore const& store = *fine_ht.impl_->store;
    backend::CoordStoreInfo const info = store.info();
    if (info.columns != 0 && info.columns != kTableColumns) {
        throw ValueError("fine_ht: expected a table of 4 columns (batch, x, y, z), got " +
                         std::to_string(info.columns));
    }
    KernelMapRequest const request =
        check_table_request(query_coords, kernel_size, stride, fine_ht.impl_->device);
    KernelMapPairs pairs = store.kernel_map(request);
    mark_read(request.out);
    return make_map(request, info.entries, std::move(pairs), query_coords.device());
}

}  // namespace tensorhash::coords
