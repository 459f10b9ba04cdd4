// Picks the instruction-set level of the loops that group rows by shard. They know one level more
// than the hash engine: AVX-512, which TENSORHASH_ISA=x86-64-v3 rules out.
#include <cstdlib>
#include <string_view>

#include "cpu/engine.hpp"
#include "cpu/route_engine.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::cpu {

#if defined(TH_HAS_CONV_LEVEL_v2)
RouteLoops const& route_loops_v2();
#endif
#if defined(TH_HAS_CONV_LEVEL_v3)
RouteLoops const& route_loops_v3();
#endif
#if defined(TH_HAS_CONV_LEVEL_v4)
RouteLoops const& route_loops_v4();
#endif
#if defined(TH_HAS_CONV_LEVEL_generic)
RouteLoops const& route_loops_generic();
#endif

namespace {

#if defined(TH_HAS_CONV_LEVEL_v4)
bool uses_v4() noexcept {
    char const* const wanted = std::getenv("TENSORHASH_ISA");
    bool const refused = wanted != nullptr && std::string_view(wanted) == "x86-64-v3";
    return has_v4() && !refused && std::string_view(instruction_set()) != "x86-64-v2";
}
#endif

RouteLoops const& choose() noexcept {
#if defined(TH_HAS_CONV_LEVEL_v4)
    if (uses_v4()) return route_loops_v4();
#endif
#if defined(TH_HAS_CONV_LEVEL_v2) && defined(TH_HAS_CONV_LEVEL_v3)
    if (std::string_view(instruction_set()) == "x86-64-v2") return route_loops_v2();
#endif
#if defined(TH_HAS_CONV_LEVEL_v3)
    return route_loops_v3();
#elif defined(TH_HAS_CONV_LEVEL_v2)
    return route_loops_v2();
#else
    return route_loops_generic();
#endif
}

}  // namespace

RouteLoops const& route_loops() {
    static RouteLoops const& chosen = choose();
    return chosen;
}

}  // namespace tensorhash::cpu
