// Are many keys of a batch equal?
#pragma once

#include "map/arguments.hpp"

namespace tensorhash::ranks {

/// Whether about a third of the rows repeat a key, judged by a sample. The keys alone decide.
bool has_many_repeats(map::CheckedBatch const& keys, Element const& element);

}  // namespace tensorhash::ranks
