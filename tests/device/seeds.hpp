// How many seeds a test of device code runs, and with which seeds each body ran.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

namespace th_test {

/// A few, or 50 in `make test-release`.
inline std::uint64_t seeds(std::uint64_t few) {
    return std::getenv("TENSORHASH_TEST_IN_FULL") != nullptr ? 50 : few;
}

/// When all tests are over, call this for each body. If the tests run in several processes,
/// TENSORHASH_BODY_SEEDS names a folder for what each of them saw, and check_seeds.py adds it up.
/// Otherwise the body must have run.
inline void check_seeds(std::string const& body, std::set<std::uint64_t> const& ran_with) {
    if (char const* const folder = std::getenv("TENSORHASH_BODY_SEEDS")) {
        std::ofstream file(folder + ("/" + std::to_string(getpid())), std::ios::app);
        file << body << "\t-\n";
        for (std::uint64_t const seed : ran_with) file << body << '\t' << seed << '\n';
    } else if (testing::GTEST_FLAG(filter) == "*") {
        EXPECT_GE(ran_with.size(), 1u) << "no test ran the body " << body;
    }
}

}  // namespace th_test
