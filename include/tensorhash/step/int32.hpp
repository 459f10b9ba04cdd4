// Which 64-bit coordinates int32 can hold.
#pragma once

#include <cstdint>

#include "tensorhash/step/platform.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

TH_STEP constexpr bool fits_int32(std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
