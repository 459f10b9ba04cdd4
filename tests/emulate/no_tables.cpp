// Stands in for emulated_tables.cpp where Boost.Context is missing.
#include "emulate/emulated_tables.hpp"

namespace tensorhash::emulate {

MakeTable table_factory(LazyDevices&) { return {}; }

}  // namespace tensorhash::emulate
