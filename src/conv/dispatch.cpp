// Picks the instruction-set level of the convolution's loops. It knows one level more than the
// hash engine: AVX-512, which TENSORHASH_ISA=x86-64-v3 rules out.
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "conv/loops.hpp"
#include "cpu/engine.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::conv {

namespace {

std::atomic<Level const*> forced_level{nullptr};

#if defined(TH_HAS_CONV_LEVEL_v4)
bool uses_v4() noexcept {
    char const* const wanted = std::getenv("TENSORHASH_ISA");
    bool const refused = wanted != nullptr && std::string_view(wanted) == "x86-64-v3";
    return cpu::has_v4() && !refused && std::string_view(instruction_set()) != "x86-64-v2";
}
#endif

Level const& choose() noexcept {
#if defined(TH_HAS_CONV_LEVEL_v4)
    if (uses_v4()) return level_v4();
#endif
#if defined(TH_HAS_CONV_LEVEL_v2) && defined(TH_HAS_CONV_LEVEL_v3)
    if (std::string_view(instruction_set()) == "x86-64-v2") return level_v2();
#endif
#if defined(TH_HAS_CONV_LEVEL_v3)
    return level_v3();
#elif defined(TH_HAS_CONV_LEVEL_v2)
    return level_v2();
#else
    return level_generic();
#endif
}

}  // namespace

Level const& level() noexcept {
    // Relaxed: a level is a constant, and tests set it between calls.
    Level const* const forced = forced_level.load(std::memory_order_relaxed);
    static Level const& chosen = choose();
    return forced != nullptr ? *forced : chosen;
}

void force_level(Level const* forced) noexcept {
    forced_level.store(forced, std::memory_order_relaxed);
}

}  // namespace tensorhash::conv
