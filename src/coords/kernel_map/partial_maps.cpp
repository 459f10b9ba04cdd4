// Joins partial maps: the counts give each part its place, then all parts are copied in parallel.
#include "coords/kernel_map/partial_maps.hpp"

#include <utility>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

/// Counts the pairs of each group and scans the counts to offsets.
void set_offsets(PartialMaps const& parts, std::span<std::int64_t> offsets) {
    for (PartialMap const& part : parts) {
        for (PartialMap::Run const& run : part.runs) offsets[run.group] += run.count;
    }
    runtime::scan(offsets);
}

void set_places(PartialMaps& parts, std::span<std::int64_t const> offsets) {
    std::vector<std::int64_t> next(offsets.begin(), offsets.end());
    for (PartialMap& part : parts) {
        for (PartialMap::Run& run : part.runs) {
            run.place = next[run.group];
            next[run.group] += run.count;
        }
    }
}

}  // namespace

KernelMapPairs join_partial_maps(PartialMaps& parts, std::size_t groups) {
    KernelMapPairs pairs;
    pairs.offsets = Tensor::zeros({static_cast<std::int64_t>(groups) + 1}, Dtype::Int64);
    auto const offsets = pairs.offsets.as_mutable<std::int64_t>();
    set_offsets(parts, offsets);
    set_places(parts, offsets);
    pairs.in_maps = Tensor::empty({offsets[groups]}, Dtype::Int32);
    pairs.out_maps = Tensor::empty({offsets[groups]}, Dtype::Int32);
    auto* const in = pairs.in_maps.as_mutable<std::int32_t>().data();
    auto* const out = pairs.out_maps.as_mutable<std::int32_t>().data();
    for (PartialMap const& part : parts) {
        pairs.coarse_probes += part.coarse_probes;
        pairs.fine_probes += part.fine_probes;
    }
    runtime::run_tasks(parts.size(), [&](std::size_t i) {
        PartialMap const part = std::exchange(parts[i], {});
        auto const first_row = static_cast<std::int32_t>(part.first_row);
        std::size_t from = 0;
        for (PartialMap::Run const& run : part.runs) {
            for (std::int64_t at = run.place; at < run.place + run.count; ++at, ++from) {
                in[at] = part.in[from];
                out[at] = first_row + part.out[from];
            }
        }
    });
    return pairs;
}

}  // namespace tensorhash::coords
