// A body that no test runs proves nothing: when all tests are over, every kernel must have run.
#include <gtest/gtest.h>

#include "device/seeds.hpp"
#include "ptx/interpreter.hpp"

namespace th_ptx {
namespace {

class EveryBodyRan : public testing::Environment {
public:
    void TearDown() override {
        for (auto const& [name, kernel] : program_of_file(TH_BODIES_PTX)) {
            auto const ran = kernels_that_ran().find(name);
            bool const did_run = ran != kernels_that_ran().end();
            th_test::check_seeds(name, did_run ? ran->second : std::set<std::uint64_t>());
        }
    }
};

[[maybe_unused]] testing::Environment* const registered =
    testing::AddGlobalTestEnvironment(new EveryBodyRan);

}  // namespace
}  // namespace th_ptx
