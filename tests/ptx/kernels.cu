// Everything that the interpreter runs: the kernel bodies, the kernels of the examples, and lookups
// by a table's view.
#include "cuda/bodies.cu"

#include "06_device_view/neighbours.cuh"
#include "device/view_bodies.hpp"

namespace tensorhash {

#define TH_INSTANTIATE_VIEW(...) TH_INSTANTIATE(th_test::FindByView<__VA_ARGS__>)
namespace {
using th_test::Voxel3;
}
TH_FOR_EACH_VIEWED_KEY(TH_INSTANTIATE_VIEW)

}  // namespace tensorhash
