// Picks the instruction-set level of the group loops: AVX-512 is one level more than the index has.
#include <cstdlib>
#include <string_view>

#include "cpu/group_engine.hpp"
#include "cpu/level_choice.hpp"

namespace tensorhash::cpu {

#if defined(TH_HAS_GROUP_LEVEL_v4)

GroupLoops const& group_loops_v2();
GroupLoops const& group_loops_v3();
GroupLoops const& group_loops_v4();

namespace {

GroupLoops const& choose() noexcept {
    if (std::string_view(instruction_set()) == "x86-64-v2") return group_loops_v2();
    char const* const wanted = std::getenv("TENSORHASH_ISA");
    bool const refused = wanted != nullptr && std::string_view(wanted) == "x86-64-v3";
    bool const has_v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    return has_v4 && !refused ? group_loops_v4() : group_loops_v3();
}

}  // namespace

GroupLoops const& group_loops() {
    static GroupLoops const& chosen = choose();
    return chosen;
}

#else
TH_CHOOSE_LEVEL(GroupLoops, group_loops)
#endif

}  // namespace tensorhash::cpu
