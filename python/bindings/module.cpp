// Defines the extension module tensorhash._core.
#include "bindings.hpp"
#include "tensorhash/version.hpp"

NB_MODULE(_core, m) {
    using namespace tensorhash::bindings;
#if defined(NDEBUG)
    // Other libraries may hold our arrays until after the interpreter has ended: not our leak.
    nb::set_leak_warnings(false);
#endif
    m.doc() = "The C++ core of tensorhash. Use the classes of `tensorhash` instead.";
    m.attr("version") = TENSORHASH_VERSION;
    bind_errors(m);
    bind_tensor(m);
    bind_files(m);
    bind_hash_map(m);
    bind_coords_tables(m);
    bind_geometry(m);
    bind_kernel_maps(m);
    bind_conv(m);
    bind_update(m);
    bind_bounded_map(m);
    bind_ranks(m);
    bind_sharded_map(m);
    bind_data(m);
    bind_arrow(m);
    bind_strings(m);
    bind_threads(m);
    bind_neighbor_index(m);
    bind_voxel_block_grid(m);
    bind_devices(m);
    bind_elements(m);
}
