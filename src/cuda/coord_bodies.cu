// The bodies of coordinate tables and kernel maps.
#include "cuda/instantiate.hpp"

namespace tensorhash {

using namespace device;

TH_COORD_BODIES(TH_INSTANTIATE)

}  // namespace tensorhash
