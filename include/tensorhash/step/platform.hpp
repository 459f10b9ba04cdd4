// The one place where kernel bodies learn what compiles them: a host compiler or a CUDA compiler.
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

// Selects the device form of the steps: aligned loads of keys, bounded probes, no SIMD. CUDA compilers
// always take it. An emulator or a test defines the macro to run that form on a host.
#if defined(__CUDACC__) && !defined(TH_DEVICE_STEPS)
#define TH_DEVICE_STEPS 1
#endif

// The CPU back end is compiled once per instruction-set level. Each level has its own namespace, so
// that the linker cannot replace a baseline function by its twin for a newer machine. The device form
// has one for the same reason.
#if defined(TH_ISA)
#define TH_KERNEL_NAMESPACE TH_ISA
#elif defined(TH_DEVICE_STEPS)
#define TH_KERNEL_NAMESPACE device_steps
#else
#define TH_KERNEL_NAMESPACE generic
#endif

// SIMD reads a line in one go; device code and other machines take the scalar form. So does a thread sanitizer build:
// the sanitizer cannot see that vector loads are atomic lane by lane.
#if defined(TH_DEVICE_STEPS) || defined(__SANITIZE_THREAD__)
#define TH_SIMD_NONE 1
#elif defined(__AVX2__)
#define TH_SIMD_AVX2 1
#include <immintrin.h>
#elif defined(__SSE4_1__)
#define TH_SIMD_SSE41 1
#include <smmintrin.h>
#else
#define TH_SIMD_NONE 1
#endif

// Comes before every access of `Shared` on a host. An emulator defines it to switch threads there.
#if !defined(TH_SWITCH_POINT)
#define TH_SWITCH_POINT() static_cast<void>(0)
#endif

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// The value of TH_DEVICE_STEPS, for code that needs no #if.
#if defined(TH_DEVICE_STEPS)
inline constexpr bool kDeviceSteps = true;
#else
inline constexpr bool kDeviceSteps = false;
#endif

// GCC takes a function that does nothing but prefetch for one without any effect, and drops calls of it that are not
// yet inlined; an empty statement that it must not drop keeps them.
#define TH_KEEP_PREFETCH() asm volatile("")

/// Asks for the line at `address`; a hint, never a fault.
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

/// The same, for a line about to be written.
TH_STEP void prefetch_for_write(void const* address) {
#if defined(__CUDACC__)
    prefetch(address);
#else
    __builtin_prefetch(address, 1, 3);
    TH_KEEP_PREFETCH();
#endif
}

/// The same number, of which the compiler knows nothing: it would turn what is computed from it into branches on what it
/// may be, where nobody can predict that.
TH_STEP std::uint32_t unpredictable(std::uint32_t number) {
#if !defined(__CUDACC__)
    asm("" : "+r"(number));
#endif
    return number;
}

/// Position of the lowest set bit; `bits` is not zero.
TH_STEP std::uint32_t lowest_bit(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
    return static_cast<std::uint32_t>(__builtin_ctz(bits));
#endif
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
