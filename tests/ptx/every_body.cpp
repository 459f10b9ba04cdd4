// A body that no test runs proves nothing: when all tests are over, every kernel must have run.
#include <gtest/gtest.h>

#include "ptx/interpreter.hpp"

namespace th_ptx {
namespace {

class EveryBodyRan : public testing::Environment {
public:
    void TearDown() override {
        if (testing::GTEST_FLAG(filter) != "*") return;
        for (auto const& [name, kernel] : program_of_file(TH_BODIES_PTX)) {
            EXPECT_TRUE(kernels_that_ran().contains(name)) << "no test ran the body " << name;
        }
    }
};

[[maybe_unused]] testing::Environment* const registered =
    testing::AddGlobalTestEnvironment(new EveryBodyRan);

}  // namespace
}  // namespace th_ptx
