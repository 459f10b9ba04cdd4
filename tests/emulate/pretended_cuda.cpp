// A CUDA plugin without CUDA, to test what the loader says. PRETENDED_CUDA_DEVICES is the number of
// its devices; PRETENDED_CUDA_VERSION the version of tensorhash that it was built for.
#include <cstdlib>
#include <cstring>

#include "backend/plugins.hpp"
#include "emulate/refusing_backend.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::emulate {
namespace {

char const* setting(char const* name, char const* otherwise) {
    char const* const text = std::getenv(name);
    return text != nullptr ? text : otherwise;
}

class PretendedCuda final : public RefusingBackend {
public:
    Allocation allocate(std::size_t, Device) override { throw std::bad_alloc(); }
    void zero(void*, std::size_t, Device) override {}
    void copy(void*, void const*, std::size_t, Device) override {}
    void copy_strided(void*, void const*, Shape const&, Shape const&, std::size_t,
                      Device) override {}
    void copy_between(void*, Device, void const*, Device, std::size_t) override {}
    Event record(Stream) override { return {}; }
    void wait(Stream, Event const&) override {}
    void synchronize(Stream) override {}
    void check(Device) override {}
    void release_cache(Device) override { ++releases; }

    int releases = 0;

    Device::Type type() const noexcept override { return Device::Type::Cuda; }
    int device_count() noexcept override {
        return std::atoi(setting("PRETENDED_CUDA_DEVICES", "0"));
    }
    std::string why_no_device() override { return "there is no CUDA driver (error 35)"; }
};

PretendedCuda pretended;

}  // namespace
}  // namespace tensorhash::emulate

/// How often a cache was released.
extern "C" __attribute__((visibility("default"))) int pretended_releases() {
    return tensorhash::emulate::pretended.releases;
}

extern "C" __attribute__((visibility("default"))) tensorhash::backend::DeviceBackend*
tensorhash_backend(char const* version) {
    char const* const built_for =
        tensorhash::emulate::setting("PRETENDED_CUDA_VERSION", TENSORHASH_VERSION);
    return std::strcmp(version, built_for) == 0 ? &tensorhash::emulate::pretended : nullptr;
}
