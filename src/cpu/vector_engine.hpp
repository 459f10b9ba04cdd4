// The CPU back end's loops over the rows of a vector-key table: one table of functions per
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/flat_engine.hpp"
#include "tensorhash/step/vector_key.hpp"

namespace tensorhash::cpu {

struct VectorLoops {
    /// out[i] = the row equal to query i, or -1; queries are [count, columns].
    void (*find)(step::VectorView const&, std::int32_t const* queries, std::size_t count,
                 std::int32_t* out);
    /// Claims slots for the table's own rows [begin, end).
    using Claim = FlatCount (*)(step::VectorView const&, std::size_t begin, std::size_t end);
    Claim claim_exclusive;  // for one thread
    Claim claim_shared;     // several ranges at once
};

/// The loops at the best level that the machine and TENSORHASH_ISA allow.
VectorLoops const& vector_loops();

}  // namespace tensorhash::cpu
