// What most sources of the library include, compiled once in builds with TENSORHASH_PRECOMPILE. No
// source relies on it: each includes what it uses, and builds without the option are the proof.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/tensorhash.hpp"
