// The packed key of a coordinate (b, x, y, z) and its hash, for host and device code.
#pragma once

#include "tensorhash/step/packed_key.hpp"

namespace tensorhash::coords {

using kernel::kBatchMax;
using kernel::kCoordMax;
using kernel::kCoordMin;
using kernel::kValidBit;
using kernel::pack_key_4d;
using kernel::packed_or_empty;
using kernel::Splitmix64Hash;
using kernel::unpack_key_4d;

}  // namespace tensorhash::coords
