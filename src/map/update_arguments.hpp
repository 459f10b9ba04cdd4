// Argument checks of `update`, shared by HashMap, BoundedHashMap and ShardedHashMap.
#pragma once

#include <optional>
#include <vector>

#include "map/arguments.hpp"
#include "tensorhash/optimizer.hpp"

namespace tensorhash::map {

/// Throws ValueError if a hyperparameter is out of range or the table lacks the optimizer's
/// columns, TypeError if the weights are not floats.
void check_optimizer(Optimizer const& optimizer, std::vector<Element> const& columns);

/// Checks a batch of `rows` gradients; returns it aligned to the dtype.
CheckedBatch check_gradients(Tensor const& gradients, Element const& element, std::size_t rows,
                             Device device = {});

/// Checks UpdateOptions::initial; returns nothing if it is not given.
std::optional<FillRows> check_initial(UpdateOptions const& options,
                                      std::vector<Element> const& columns, std::size_t rows,
                                      Device device = {});

/// Throws KeyError that names the first row with mask 0. `otherwise` lists the values of `missing`
/// that avoid the error.
void require_found(unsigned char const* mask, std::size_t rows,
                   char const* otherwise = "skip or insert");

/// Throws ValueError: a bounded table does not support Missing::Insert.
[[noreturn]] void fail_insert_in_update();

}  // namespace tensorhash::map
