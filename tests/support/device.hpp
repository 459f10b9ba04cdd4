// The device that the contract tests run on: TENSORHASH_TEST_DEVICE, or "cpu:0".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorhash/hash_map.hpp"

namespace th_test {

tensorhash::Device test_device();

/// Tables on the device under test.
tensorhash::HashMap make_map(tensorhash::Capacity capacity, tensorhash::Element key,
                             std::vector<tensorhash::Element> values = {},
                             std::optional<std::uint64_t> seed = {});
tensorhash::HashSet make_set(tensorhash::Capacity capacity, tensorhash::Element key);

}  // namespace th_test
