// libtensorhash_cuda.so: the plugin of GPUs, with the CUDA runtime in it. It needs no driver to
// load; without one it says that there is none.
#include <cstring>

#include "backend/plugins.hpp"
#include "cuda/backend.hpp"
#include "tensorhash/version.hpp"

extern "C" __attribute__((visibility("default"))) tensorhash::backend::DeviceBackend*
tensorhash_backend(char const* version) {
    // Never freed: tensors may outlive every other global variable.
    static auto& backend = *new tensorhash::cuda::CudaBackend;
    return std::strcmp(version, TENSORHASH_VERSION) == 0 ? &backend : nullptr;
}
