// All kernel bodies as device code.
#include "device/bodies.hpp"

#include "cuda/entry.hpp"

namespace tensorhash::device {

#define TH_INSTANTIATE(...) template __global__ void cuda::run<__VA_ARGS__>(__VA_ARGS__ const);
#define TH_INSTANTIATE_READER(Reader) TH_BODIES_OF_READER(TH_INSTANTIATE, Reader)

}  // namespace tensorhash::device

namespace tensorhash {

using namespace device;

TH_FOR_EACH_READER(TH_INSTANTIATE_READER)
TH_NARROW_BODIES(TH_INSTANTIATE)
TH_TABLE_BODIES(TH_INSTANTIATE)
TH_JOIN_BODIES(TH_INSTANTIATE)
TH_STEP_BODIES(TH_INSTANTIATE)
TH_COORD_BODIES(TH_INSTANTIATE)

}  // namespace tensorhash
