// Picks the instruction-set level of the group loops.
#include "cpu/group_engine.hpp"
#include "cpu/level_choice.hpp"

namespace tensorhash::cpu {

TH_CHOOSE_LEVEL_UP_TO_V4(GroupLoops, group_loops)

}  // namespace tensorhash::cpu
