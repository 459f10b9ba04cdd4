// Bodies as kernels: TH_INSTANTIATE compiles one. clang compiles them without NVIDIA's headers, for
// tests that interpret PTX, so there only the kernel itself.
#pragma once

#include "device/bodies.hpp"

#include "cuda/entry.hpp"

#if defined(__clang__)
#define TH_INSTANTIATE(...) template __global__ void cuda::run<__VA_ARGS__>(__VA_ARGS__ const);
#else

#include "cuda/launch.hpp"

namespace tensorhash::cuda {

static_assert(kBlockThreads == kThreads, "the launch bounds are those of the launches");

template <class Body>
cudaError_t start(Body const& body, Launch const& how) {
    void* arguments[] = {const_cast<Body*>(&body)};
    return cudaLaunchKernel(run<Body>, how.blocks, how.threads, arguments, 0, how.stream);
}

}  // namespace tensorhash::cuda

#define TH_INSTANTIATE(...) \
    template cudaError_t cuda::start<__VA_ARGS__>(__VA_ARGS__ const&, cuda::Launch const&);
#endif

#define TH_INSTANTIATE_READER(Reader) TH_BODIES_OF_READER(TH_INSTANTIATE, Reader)
