#include "support/device.hpp"

#include <cstdlib>
#include <utility>

namespace th_test {

tensorhash::Device test_device() {
    char const* const name = std::getenv("TENSORHASH_TEST_DEVICE");
    return tensorhash::Device::parse(name != nullptr ? name : "cpu:0");
}

tensorhash::HashMap make_map(tensorhash::Capacity capacity, tensorhash::Element key,
                             std::vector<tensorhash::Element> values,
                             std::optional<std::uint64_t> seed) {
    return {capacity, std::move(key), std::move(values), test_device(), seed};
}

tensorhash::HashSet make_set(tensorhash::Capacity capacity, tensorhash::Element key) {
    return {capacity, std::move(key), test_device()};
}

}  // namespace th_test
