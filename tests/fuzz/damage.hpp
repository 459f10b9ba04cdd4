// Tables to damage, and damage.
#pragma once

#include <string>
#include <vector>

#include "support/batches.hpp"

namespace th_test {

/// Saved tables of every kind of key: small ones, so that headers are a fair part of them.
std::vector<std::string> saved_tables(Random& random);

/// The bytes with one thing changed; pieces may come from another file.
std::string mutated(std::string bytes, std::string const& other, Random& random);

}  // namespace th_test
