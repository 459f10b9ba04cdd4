// Picks one of the functions that exist once per instruction-set level: that of the other loops.
#pragma once

#include <string_view>

#include "tensorhash/version.hpp"

// The build defines TH_HAS_LEVEL_<level> for each level that it compiles.
#if defined(TH_HAS_LEVEL_v2) && defined(TH_HAS_LEVEL_v3)
/// Declares `Loops const& prefix_<level>()` and defines `Loops const& prefix()`.
#define TH_CHOOSE_LEVEL(Loops, prefix)                                                      \
    Loops const& prefix##_v2();                                                             \
    Loops const& prefix##_v3();                                                             \
    Loops const& prefix() {                                                                 \
        static bool const has_only_v2 = std::string_view(instruction_set()) == "x86-64-v2"; \
        return has_only_v2 ? prefix##_v2() : prefix##_v3();                                 \
    }
#elif defined(TH_HAS_LEVEL_v3)
#define TH_CHOOSE_LEVEL(Loops, prefix) \
    Loops const& prefix##_v3();        \
    Loops const& prefix() { return prefix##_v3(); }
#elif defined(TH_HAS_LEVEL_v2)
#define TH_CHOOSE_LEVEL(Loops, prefix) \
    Loops const& prefix##_v2();        \
    Loops const& prefix() { return prefix##_v2(); }
#else
#define TH_CHOOSE_LEVEL(Loops, prefix) \
    Loops const& prefix##_generic();   \
    Loops const& prefix() { return prefix##_generic(); }
#endif

/// The same for loops that have a level v4, too. A build with that level also has v3.
#if defined(TH_HAS_LEVEL_v4) && defined(TH_HAS_LEVEL_v2)
#define TH_CHOOSE_LEVEL_UP_TO_V4(Loops, prefix)                  \
    Loops const& prefix##_v2();                                  \
    Loops const& prefix##_v3();                                  \
    Loops const& prefix##_v4();                                  \
    Loops const& prefix() {                                      \
        static std::string_view const level = instruction_set(); \
        return level == "x86-64-v4"   ? prefix##_v4()            \
               : level == "x86-64-v3" ? prefix##_v3()            \
                                      : prefix##_v2();           \
    }
#elif defined(TH_HAS_LEVEL_v4)
#define TH_CHOOSE_LEVEL_UP_TO_V4(Loops, prefix)                                        \
    Loops const& prefix##_v3();                                                        \
    Loops const& prefix##_v4();                                                        \
    Loops const& prefix() {                                                            \
        static bool const has_v4 = std::string_view(instruction_set()) == "x86-64-v4"; \
        return has_v4 ? prefix##_v4() : prefix##_v3();                                 \
    }
#else
#define TH_CHOOSE_LEVEL_UP_TO_V4(Loops, prefix) TH_CHOOSE_LEVEL(Loops, prefix)
#endif
