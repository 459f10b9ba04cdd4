// Headers that nearly every test file includes, compiled once (CMake: target_precompile_headers).
// No test relies on it: each includes what it uses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tensorhash/tensorhash.hpp"
