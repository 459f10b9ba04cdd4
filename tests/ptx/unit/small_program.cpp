#include "ptx/unit/small_program.hpp"

#include <memory>

namespace th_ptx {

std::string small_module(std::string const& body) {
    return R"(.version 8.8
.target sm_80
.address_size 64
.visible .entry small(
    .param .u64 first,
    .param .u64 second
)
{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .b32 %f<4>;
    ld.param.u64 %rd1, [first];
    ld.param.u64 %rd2, [second];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r1, %r2, %r3, %r4;
)" + body + "\n}\n";
}

Kernel small_kernel(std::string const& body) { return parse(small_module(body)).at("small"); }

std::uint32_t* SmallDevice::words(std::vector<std::uint32_t> const& values) {
    std::uint32_t* const p = unwritten_words(values.size());
    arena_.write(p, values.data(), values.size() * sizeof(std::uint32_t));
    return p;
}

std::uint32_t* SmallDevice::unwritten_words(std::size_t count) {
    return static_cast<std::uint32_t*>(arena_.allocate(count * sizeof(std::uint32_t)));
}

std::vector<std::uint32_t> SmallDevice::read(std::uint32_t const* words, std::size_t count) const {
    std::vector<std::uint32_t> values(count);
    arena_.read(values.data(), words, count * sizeof(std::uint32_t));
    return values;
}

std::uint64_t SmallDevice::run(Kernel const& kernel, void* first, void* second) {
    kernels_.push_back(std::make_unique<Kernel>(kernel));
    void* const parameters[] = {first, second};
    return launch(*kernels_.back(), grid, {parameters, sizeof parameters}, arena_, &races_,
                  options);
}

std::uint64_t SmallDevice::run(std::string const& body, void* first, void* second) {
    return run(small_kernel(body), first, second);
}

std::string SmallDevice::error_of(std::string const& body, void* first, void* second) {
    Kernel const kernel = small_kernel(body);
    try {
        run(kernel, first, second);
    } catch (PtxError const& error) {
        return error.what();
    }
    return {};
}

std::set<std::string> races_of(std::string const& body, Grid grid, int seeds) {
    std::set<std::string> all;
    for (int seed = 1; seed <= seeds; ++seed) {
        SmallDevice device;
        device.options.seed = static_cast<std::uint64_t>(seed);
        device.grid = grid;
        device.run(body, device.words(std::vector<std::uint32_t>(16)),
                   device.words(std::vector<std::uint32_t>(16)));
        all.insert(device.races().begin(), device.races().end());
    }
    return all;
}

}  // namespace th_ptx
