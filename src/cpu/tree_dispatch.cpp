// Picks the instruction-set level of the tree loops.
#include "cpu/level_choice.hpp"
#include "cpu/tree_engine.hpp"

namespace tensorhash::cpu {

TH_CHOOSE_LEVEL(TreeLoops, tree_loops)

}  // namespace tensorhash::cpu
