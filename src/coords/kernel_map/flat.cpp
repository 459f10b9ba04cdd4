// The flat path: one lookup per out row and offset.
#include <algorithm>

#include "coords/kernel_map/partial_maps.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {

KernelMapPairs flat_kernel_map(KernelMapRequest const& request, CoordIndex const& index) {
    std::size_t const rows = request.out.rows;
    PartialMaps parts((rows + kPartRows - 1) / kPartRows);
    runtime::run_tasks(parts.size(), [&](std::size_t number) {
        PartialMap& part = parts[number];
        std::size_t const begin = number * kPartRows;
        std::size_t const end = std::min(rows, begin + kPartRows);
        part.first_row = begin;
        std::int32_t found[kPartRows];
        for (std::size_t k = 0; k < request.groups; ++k) {
            index.find_shifted(request.out.data(), begin, end, shift_of(request, k), found);
            for (std::size_t place = 0; place < end - begin; ++place) {
                if (found[place] >= 0) {
                    part.add(found[place], place);
                }
            }
            part.end_group(k);
        }
        part.fine_probes = static_cast<std::int64_t>((end - begin) * request.groups);
    });
    return join_partial_maps(parts, request.groups);
}

}  // namespace tensorhash::coords
