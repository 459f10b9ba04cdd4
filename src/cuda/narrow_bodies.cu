// The bodies that read keys of up to 8 bytes.
#include "cuda/instantiate.hpp"

namespace tensorhash {

using namespace device;

TH_FOR_EACH_NARROW_READER(TH_INSTANTIATE_READER)
TH_NARROW_BODIES(TH_INSTANTIATE)

}  // namespace tensorhash
