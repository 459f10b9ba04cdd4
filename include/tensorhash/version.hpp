// What this build is: its version, the same as the Python package's, and the instruction set in use.
#pragma once

#include "tensorhash/export.hpp"

#define TENSORHASH_VERSION_MAJOR 0
#define TENSORHASH_VERSION_MINOR 1
#define TENSORHASH_VERSION_PATCH 0
#define TENSORHASH_VERSION "0.1.0"

namespace tensorhash {

/// "x86-64-v3", "x86-64-v2" or "generic": the best level that this machine has, or what TENSORHASH_ISA asked for.
TH_API char const* instruction_set() noexcept;

}  // namespace tensorhash
