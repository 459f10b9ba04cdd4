// The packed key of a coordinate (b, x, y, z) and its hash, for host and device code.
#pragma once

#include "tensorhash/step/packed_key.hpp"

namespace tensorhash::coords {

using step::kBatchMax;
using step::kCoordMax;
using step::kCoordMin;
using step::kValidBit;
using step::pack_key_4d;
using step::packed_or_empty;
using step::Splitmix64Hash;
using step::unpack_key_4d;

}  // namespace tensorhash::coords
