// Picks the instruction-set level of the string loops.
#include "cpu/level_choice.hpp"
#include "strings/string_loops.hpp"

namespace tensorhash::strings {

TH_CHOOSE_LEVEL(StringLoops, string_loops)

}  // namespace tensorhash::strings
