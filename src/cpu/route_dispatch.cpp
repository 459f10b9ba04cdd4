// Picks the instruction-set level of the loops that group rows by shard.
#include "cpu/level_choice.hpp"
#include "cpu/route_engine.hpp"

namespace tensorhash::cpu {

TH_CHOOSE_LEVEL_UP_TO_V4(RouteLoops, route_loops)

}  // namespace tensorhash::cpu
