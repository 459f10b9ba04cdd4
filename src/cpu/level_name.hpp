// Names of functions that exist once per instruction-set level.
#pragma once

#include "tensorhash/step/platform.hpp"

#define TH_JOIN_NAMES_(a, b) a##b
#define TH_JOIN_NAMES(a, b) TH_JOIN_NAMES_(a, b)
/// `prefix` followed by the level: flat_loops_ becomes flat_loops_v3.
#define TH_LEVEL_NAME(prefix) TH_JOIN_NAMES(prefix, TH_STEP_NAMESPACE)
