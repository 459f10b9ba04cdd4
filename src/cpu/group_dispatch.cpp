// Picks the instruction-set level of the group loops: that of the other loops.
#include <string_view>

#include "cpu/group_engine.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::cpu {

#if defined(TH_HAS_LEVEL_v2)
GroupLoops const& group_loops_v2();
#endif
#if defined(TH_HAS_LEVEL_v3)
GroupLoops const& group_loops_v3();
#endif
#if defined(TH_HAS_LEVEL_generic)
GroupLoops const& group_loops_generic();
#endif

namespace {

GroupLoops const& choose() noexcept {
#if defined(TH_HAS_LEVEL_v2) && defined(TH_HAS_LEVEL_v3)
    if (std::string_view(instruction_set()) == "x86-64-v2") {
        return group_loops_v2();
    }
#endif
#if defined(TH_HAS_LEVEL_v3)
    return group_loops_v3();
#elif defined(TH_HAS_LEVEL_v2)
    return group_loops_v2();
#else
    return group_loops_generic();
#endif
}

}  // namespace

GroupLoops const& group_loops() {
    static GroupLoops const& chosen = choose();
    return chosen;
}

}  // namespace tensorhash::cpu
