// The bodies of tables that do not read keys: values, lists, optimizer steps.
#include "cuda/instantiate.hpp"

namespace tensorhash {

using namespace device;

TH_TABLE_BODIES(TH_INSTANTIATE)
TH_JOIN_BODIES(TH_INSTANTIATE)
TH_STEP_BODIES(TH_INSTANTIATE)

}  // namespace tensorhash
