// Declares the functions that register classes and functions with the extension module.
#pragma once

#include <nanobind/nanobind.h>

#include "gil.hpp"

namespace tensorhash::bindings {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_files(nb::module_& m);
void bind_geometry(nb::module_& m);
void bind_hash_map(nb::module_& m);
void bind_conv(nb::module_& m);
void bind_coords_tables(nb::module_& m);
void bind_kernel_maps(nb::module_& m);
void bind_neighbor_index(nb::module_& m);
void bind_update(nb::module_& m);
void bind_bounded_map(nb::module_& m);
void bind_ranks(nb::module_& m);
void bind_sharded_map(nb::module_& m);
void bind_data(nb::module_& m);
void bind_arrow(nb::module_& m);
void bind_strings(nb::module_& m);
void bind_threads(nb::module_& m);
void bind_voxel_block_grid(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_elements(nb::module_& m);

}  // namespace tensorhash::bindings
