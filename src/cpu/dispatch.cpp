// Picks the instruction-set level of the CPU back end for this machine.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string_view>

#include "cpu/engine.hpp"
#include "cpu/flat_engine.hpp"
#include "cpu/shard_engine.hpp"
#include "cpu/vector_engine.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::cpu {

using IndexLoopsFor = IndexLoops const& (*)(std::uint32_t key_bytes, std::uint32_t float_bytes);
using FlatLoopsOf = FlatLoops const& (*)();
using VectorLoopsOf = VectorLoops const& (*)();
using FindInShardsFor = FindInShards (*)(std::uint32_t key_bytes, std::uint32_t float_bytes);

// The build defines TH_HAS_LEVEL_<level> for each level that it compiles.
#if defined(TH_HAS_LEVEL_v2)
IndexLoops const& index_loops_v2(std::uint32_t key_bytes, std::uint32_t float_bytes);
FlatLoops const& flat_loops_v2();
VectorLoops const& vector_loops_v2();
FindInShards find_in_shards_v2(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
#if defined(TH_HAS_LEVEL_v3)
IndexLoops const& index_loops_v3(std::uint32_t key_bytes, std::uint32_t float_bytes);
FlatLoops const& flat_loops_v3();
VectorLoops const& vector_loops_v3();
FindInShards find_in_shards_v3(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
#if defined(TH_HAS_LEVEL_v4)
IndexLoops const& index_loops_v4(std::uint32_t key_bytes, std::uint32_t float_bytes);
FindInShards find_in_shards_v4(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif
#if defined(TH_HAS_LEVEL_generic)
IndexLoops const& index_loops_generic(std::uint32_t key_bytes, std::uint32_t float_bytes);
FlatLoops const& flat_loops_generic();
VectorLoops const& vector_loops_generic();
FindInShards find_in_shards_generic(std::uint32_t key_bytes, std::uint32_t float_bytes);
#endif

bool has_v3() noexcept {
#if defined(__x86_64__)
    // What v3 has beyond v2. Some compilers do not know the name of the level or the names of its
    // last three features.
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

bool has_v4() noexcept {
#if defined(__x86_64__)
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

namespace {

struct Level {
    char const* name;
    IndexLoopsFor index_loops;
    FlatLoopsOf flat_loops;
    VectorLoopsOf vector_loops;
    FindInShardsFor find_in_shards;
};

#if defined(TH_HAS_LEVEL_v3) && (defined(TH_HAS_LEVEL_v2) || defined(TH_HAS_LEVEL_v4))
/// TENSORHASH_ISA=x86-64-v2 or x86-64-v3 is the highest level, to compare levels or to rule one
/// out.
bool is_highest(std::string_view level) noexcept {
    char const* const wanted = std::getenv("TENSORHASH_ISA");
    return wanted != nullptr && wanted == level;
}
#endif

Level choose() noexcept {
#if defined(TH_HAS_LEVEL_v2) && defined(TH_HAS_LEVEL_v3)
    if (is_highest("x86-64-v2") || !has_v3()) {
        return {"x86-64-v2", index_loops_v2, flat_loops_v2, vector_loops_v2, find_in_shards_v2};
    }
#endif
#if defined(TH_HAS_LEVEL_v4)
    if (has_v4() && !is_highest("x86-64-v3") && !is_highest("x86-64-v2")) {
        return {"x86-64-v4", index_loops_v4, flat_loops_v3, vector_loops_v3, find_in_shards_v4};
    }
#endif
#if defined(TH_HAS_LEVEL_v3)
    return {"x86-64-v3", index_loops_v3, flat_loops_v3, vector_loops_v3, find_in_shards_v3};
#elif defined(TH_HAS_LEVEL_v2)
    return {"x86-64-v2", index_loops_v2, flat_loops_v2, vector_loops_v2, find_in_shards_v2};
#else
    return {"generic", index_loops_generic, flat_loops_generic, vector_loops_generic,
            find_in_shards_generic};
#endif
}

Level const& level() noexcept {
    static Level const chosen = choose();
    return chosen;
}

}  // namespace

IndexLoops const& index_loops(std::uint32_t key_bytes, std::uint32_t float_bytes) {
    return level().index_loops(key_bytes, float_bytes);
}

FlatLoops const& flat_loops() { return level().flat_loops(); }

VectorLoops const& vector_loops() { return level().vector_loops(); }

FindInShards find_in_shards(std::uint32_t key_bytes, std::uint32_t float_bytes) {
    return level().find_in_shards(key_bytes, float_bytes);
}

}  // namespace tensorhash::cpu

namespace tensorhash {

char const* instruction_set() noexcept { return cpu::level().name; }

}  // namespace tensorhash
