// When all tests on fibers are over, every body must have run, in `make test-release` with 50
// seeds.
#include "device/bodies.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <typeindex>
#include <utility>
#include <vector>

#include "device/fiber_queue.hpp"
#include "device/seeds.hpp"
#include "device/view_bodies.hpp"

namespace th_test {
namespace {

using namespace tensorhash;
using namespace tensorhash::device;

#define TH_NAME(...) {typeid(__VA_ARGS__), #__VA_ARGS__},
#define TH_NAME_READER(Reader) TH_BODIES_OF_READER(TH_NAME, Reader)
#define TH_NAME_VIEW(...) TH_NAME(FindByView<__VA_ARGS__>)

std::vector<std::pair<std::type_index, char const*>> const all_bodies{
    TH_FOR_EACH_NARROW_READER(TH_NAME_READER) TH_FOR_EACH_WIDE_READER(TH_NAME_READER)
        TH_NARROW_BODIES(TH_NAME) TH_TABLE_BODIES(TH_NAME) TH_JOIN_BODIES(TH_NAME)
            TH_STEP_BODIES(TH_NAME) TH_COORD_BODIES(TH_NAME) TH_POINT_BODIES(TH_NAME)
                TH_FOR_EACH_VIEWED_KEY(TH_NAME_VIEW)};

class EveryBodyRan : public testing::Environment {
public:
    void TearDown() override {
        for (auto const& [body, name] : all_bodies) check_seeds(name, bodies_that_ran()[body]);
    }
};

[[maybe_unused]] testing::Environment* const registered =
    testing::AddGlobalTestEnvironment(new EveryBodyRan);

}  // namespace
}  // namespace th_test
