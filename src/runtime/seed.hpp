// Where the seeds of hash tables come from.
#pragma once

#include <cstdint>

#include "tensorhash/export.hpp"

namespace tensorhash::runtime {

/// A seed for a table or a scratch index: TENSORHASH_SEED if it was set at the first call, else 64
/// random bits from the system. Throws ValueError if TENSORHASH_SEED is not a valid seed.
TH_API std::uint64_t new_seed();

}  // namespace tensorhash::runtime
