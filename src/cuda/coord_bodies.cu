// The bodies of coordinate tables, kernel maps, voxels and neighbours.
#include "cuda/instantiate.hpp"

namespace tensorhash {

using namespace device;

TH_COORD_BODIES(TH_INSTANTIATE)
TH_POINT_BODIES(TH_INSTANTIATE)

}  // namespace tensorhash
