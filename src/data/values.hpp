// Checks the value arrays of a group-by, and makes columns of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/columns.hpp"
#include "data/nunique.hpp"
#include "data/plan.hpp"

namespace tensorhash::data {

Element element_of_values(Tensor const& values, std::string const& argument);

/// Throws ValueError unless there are `rows` rows. Returns an array that columns_of() can read.
Tensor check_values(Tensor const& values, std::size_t rows, std::string const& argument);

/// The columns of all arrays, in order.
std::vector<Column> columns_of_all(std::vector<Tensor> const& arrays);

/// The result of NUnique from the sets of its components.
Tensor count_distinct(std::span<DistinctValues const> distinct, Output const& output,
                      std::size_t groups);

}  // namespace tensorhash::data
