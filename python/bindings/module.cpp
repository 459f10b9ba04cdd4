// The extension module tensorhash._core: the C++ classes as the Python package uses them, not a public API.
#include "bindings.hpp"
#include "tensorhash/version.hpp"

NB_MODULE(_core, m) {
    using namespace tensorhash::bindings;
    m.doc() = "The C++ core of tensorhash. Use the classes of `tensorhash` instead.";
    m.attr("__version__") = TENSORHASH_VERSION;
    bind_errors(m);
    bind_tensor(m);
    bind_hash_map(m);
    bind_threads(m);
}
