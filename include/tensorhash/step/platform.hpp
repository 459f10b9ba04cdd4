// What the steps need of the compiler, host or CUDA: inlining, namespaces, SIMD level, prefetch.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

// Always inlined: a per-row step is a fragment of its caller's loop, never a call.
#if defined(__CUDACC__)
#define TH_STEP __host__ __device__ __forceinline__
#else
#define TH_STEP inline __attribute__((always_inline))
#endif

// Selects the device form of the steps: aligned loads of keys, bounded probes, no SIMD. CUDA
// compilers always take it. An emulator or a test defines the macro to run that form on a host.
#if defined(__CUDACC__) && !defined(TH_DEVICE_STEPS)
#define TH_DEVICE_STEPS 1
#endif

// The CPU back end is compiled once per instruction-set level. Each level has its own namespace, so
// that the linker cannot replace a baseline function by its twin for a newer machine. The device
// form has one for the same reason.
#if defined(TH_ISA)
#define TH_STEP_NAMESPACE TH_ISA
#elif defined(TH_DEVICE_STEPS)
#define TH_STEP_NAMESPACE device_steps
#else
#define TH_STEP_NAMESPACE generic
#endif

// SIMD compares all slots of a bucket at once. Device code and other machines use the scalar form.
// So does a thread sanitizer build: it cannot see that vector loads are atomic lane by lane.
#if defined(TH_DEVICE_STEPS) || defined(__SANITIZE_THREAD__)
#define TH_SIMD_NONE 1
#elif defined(__AVX2__)
#define TH_SIMD_AVX2 1
// AVX-512 as in x86-64-v4: vectors of eight words, their products, and masks.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define TH_SIMD_AVX512 1
#endif
#include <immintrin.h>
#elif defined(__SSE4_1__)
#define TH_SIMD_SSE41 1
#include <smmintrin.h>
#else
#define TH_SIMD_NONE 1
#endif

// Runs before every `Shared` access on a host. An emulator defines it to switch threads there.
#if !defined(TH_SWITCH_POINT)
#define TH_SWITCH_POINT() static_cast<void>(0)
#endif

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// TH_DEVICE_STEPS as a constant, for code that needs no #if.
#if defined(TH_DEVICE_STEPS)
inline constexpr bool kDeviceSteps = true;
#else
inline constexpr bool kDeviceSteps = false;
#endif

// GCC assumes that a function that only prefetches has no effect, and drops calls to it before
// inlining. An empty asm statement keeps them.
#define TH_KEEP_PREFETCH() asm volatile("")

/// Prefetches the cache line at `address`. A hint: it never faults.
TH_STEP void prefetch(void const* address) {
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#elif defined(__CUDACC__)
    (void)address;
#else
    __builtin_prefetch(address, 0, 3);
    TH_KEEP_PREFETCH();
#endif
}

/// Prefetches a cache line that will be written.
TH_STEP void prefetch_for_write(void const* address) {
#if defined(__CUDACC__)
    prefetch(address);
#else
    __builtin_prefetch(address, 1, 3);
    TH_KEEP_PREFETCH();
#endif
}

/// Optimisation barrier: returns `value`, but hides its origin from the compiler, which would
/// otherwise turn arithmetic on it into unpredictable branches.
TH_STEP std::uint32_t unpredictable(std::uint32_t value) {
#if !defined(__CUDACC__)
    asm("" : "+r"(value));
#endif
    return value;
}

/// Index of the lowest set bit. `bits` must not be zero.
TH_STEP std::uint32_t lowest_bit(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
    return static_cast<std::uint32_t>(__builtin_ctz(bits));
#endif
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
