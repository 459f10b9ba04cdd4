// Saved tables for the fuzzers, and functions that damage them.
#pragma once

#include <string>
#include <vector>

#include "support/batches.hpp"

namespace th_test {

/// Saved tables with every kind of key; small, so that headers are a fair share of the bytes.
std::vector<std::string> saved_tables(Random& random);

/// The bytes with one change; it may copy a piece of `other`.
std::string mutated(std::string bytes, std::string const& other, Random& random);

}  // namespace th_test
