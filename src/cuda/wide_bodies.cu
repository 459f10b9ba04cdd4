// The bodies that read keys of more than 8 bytes.
#include "cuda/instantiate.hpp"

namespace tensorhash {

using namespace device;

TH_FOR_EACH_WIDE_READER(TH_INSTANTIATE_READER)

}  // namespace tensorhash
