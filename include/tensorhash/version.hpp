// The version of this build, equal to that of the Python package, and the instruction set in use.
#pragma once

#include "tensorhash/export.hpp"

#define TENSORHASH_VERSION_MAJOR 0
#define TENSORHASH_VERSION_MINOR 1
#define TENSORHASH_VERSION_PATCH 0
#define TENSORHASH_VERSION "0.1.0"

namespace tensorhash {

/// "x86-64-v4", "x86-64-v3", "x86-64-v2" or "generic": the best level that this build and this
/// machine have. TENSORHASH_ISA=x86-64-v2 or x86-64-v3 sets the highest.
TH_API char const* instruction_set() noexcept;

}  // namespace tensorhash
