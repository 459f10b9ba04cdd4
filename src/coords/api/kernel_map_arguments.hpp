// Turns the arguments of the kernel map functions into requests for a back end.
#pragma once

#include <cstdint>

#include "backend/kernel_map_request.hpp"
#include "tensorhash/coords/kernel_map.hpp"

namespace tensorhash::coords {

/// Throws what generate_kernel_map documents, except errors about single coordinates: the back end
/// checks those.
backend::KernelMapRequest check_request(Tensor const& in_coords, Tensor const& out_coords,
                                        Shape const& stride, Kernel const& kernel,
                                        KernelMapOptions const& options);

/// The same for a list of offsets instead of a kernel. The strategy is Flat.
backend::KernelMapRequest check_offsets_request(Tensor const& in_coords, Tensor const& out_coords,
                                                Shape const& stride, Tensor const& kernel_offsets,
                                                Duplicates duplicates);

/// The same for the hierarchical path over a table of four columns on `device`; request.in stays
/// empty.
backend::KernelMapRequest check_table_request(Tensor const& query_coords, Shape const& kernel_size,
                                              std::int64_t coarse_stride, Device device);

/// Fills in the defaults of a kernel. Throws ValueError if a size is out of range or an offset does
/// not fit int32.
Kernel check_kernel(Kernel const& kernel);

/// The offsets [K, axes] of a checked kernel. The last axis varies fastest.
std::vector<std::int32_t> offsets_of(Kernel const& kernel);

}  // namespace tensorhash::coords
