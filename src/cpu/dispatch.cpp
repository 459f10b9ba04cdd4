// Which instruction-set level of the CPU back end this machine gets.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string_view>

#include "cpu/engine.hpp"
#include "cpu/flat_engine.hpp"
#include "cpu/vector_engine.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::cpu {

using KernelsFor = Kernels const& (*)(std::uint32_t key_bytes, std::uint32_t float_bytes);
using FlatKernelsOf = FlatKernels const& (*)();
using VectorKernelsOf = VectorKernels const& (*)();

// The build says by TH_HAS_LEVEL_<level> which levels it compiled.
#if defined(TH_HAS_LEVEL_v2)
Kernels const& kernels_v2(std::uint32_t key_bytes, std::uint32_t float_bytes);
FlatKernels const& flat_kernels_v2();
VectorKernels const& vector_kernels_v2();
#endif
#if defined(TH_HAS_LEVEL_v3)
Kernels const& kernels_v3(std::uint32_t key_bytes, std::uint32_t float_bytes);
FlatKernels const& flat_kernels_v3();
VectorKernels const& vector_kernels_v3();
#endif
#if defined(TH_HAS_LEVEL_generic)
Kernels const& kernels_generic(std::uint32_t key_bytes, std::uint32_t float_bytes);
FlatKernels const& flat_kernels_generic();
VectorKernels const& vector_kernels_generic();
#endif

bool has_v3() noexcept {
#if defined(__x86_64__)
    // What the level has beyond v2. Not all compilers know the level's name, or the last three by theirs.
    constexpr unsigned kMovbeAndF16c = 1u << 22 | 1u << 29;
    constexpr unsigned kLzcnt = 1u << 5;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kMovbeAndF16c) == kMovbeAndF16c &&
           __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kLzcnt) != 0;
#else
    return false;
#endif
}

namespace {

struct Level {
    char const* name;
    KernelsFor kernels;
    FlatKernelsOf flat_kernels;
    VectorKernelsOf vector_kernels;
};

#if defined(TH_HAS_LEVEL_v2) && defined(TH_HAS_LEVEL_v3)
/// TENSORHASH_ISA=x86-64-v2 asks for the baseline, to compare levels or to rule one out.
bool wants_baseline() noexcept {
    char const* const wanted = std::getenv("TENSORHASH_ISA");
    return wanted != nullptr && std::string_view(wanted) == "x86-64-v2";
}
#endif

Level choose() noexcept {
#if defined(TH_HAS_LEVEL_v2) && defined(TH_HAS_LEVEL_v3)
    if (wants_baseline() || !has_v3()) {
        return {"x86-64-v2", kernels_v2, flat_kernels_v2, vector_kernels_v2};
    }
#endif
#if defined(TH_HAS_LEVEL_v3)
    return {"x86-64-v3", kernels_v3, flat_kernels_v3, vector_kernels_v3};
#elif defined(TH_HAS_LEVEL_v2)
    return {"x86-64-v2", kernels_v2, flat_kernels_v2, vector_kernels_v2};
#else
    return {"generic", kernels_generic, flat_kernels_generic, vector_kernels_generic};
#endif
}

Level const& level() noexcept {
    static Level const chosen = choose();
    return chosen;
}

}  // namespace

Kernels const& kernels(std::uint32_t key_bytes, std::uint32_t float_bytes) {
    return level().kernels(key_bytes, float_bytes);
}

FlatKernels const& flat_kernels() { return level().flat_kernels(); }

VectorKernels const& vector_kernels() { return level().vector_kernels(); }

}  // namespace tensorhash::cpu

namespace tensorhash {

char const* instruction_set() noexcept { return cpu::level().name; }

}  // namespace tensorhash
