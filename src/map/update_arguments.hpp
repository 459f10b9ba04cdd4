// The arguments of `update`, checked; HashMap, BoundedHashMap and ShardedMap share them.
#pragma once

#include <optional>
#include <vector>

#include "map/arguments.hpp"
#include "tensorhash/optimizer.hpp"

namespace tensorhash::map {

/// Throws ValueError for a hyperparameter out of range and for columns that are not the optimizer's.
void check_optimizer(Optimizer const& optimizer, std::vector<Element> const& columns);

/// Gradients as a batch of `rows` rows, aligned; throws otherwise.
Batch check_gradients(Tensor const& gradients, Element const& element, std::size_t rows);

/// UpdateOptions::initial, checked; none if it is not given.
std::optional<Fill> check_initial(UpdateOptions const& options, std::vector<Element> const& columns,
                                  std::size_t rows);

/// Throws KeyError that names the first row of the mask that is 0, and the values of `missing` that
/// make this no error.
void require_found(unsigned char const* mask, std::size_t rows,
                   char const* otherwise = "skip or insert");

/// Throws ValueError: a bounded table refuses Missing::Insert.
[[noreturn]] void fail_insert_in_update();

}  // namespace tensorhash::map
