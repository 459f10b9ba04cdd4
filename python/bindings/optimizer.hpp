// Binds update() for every table, and the class that holds an optimizer.
#pragma once

#include "table_in.hpp"
#include "tensorhash/optimizer.hpp"

namespace tensorhash::bindings {

/// Wraps the variant, because nanobind would convert a bare one to its alternative.
struct BoundOptimizer {
    Optimizer value;
};

template <class Map>
Pair update_table(Map& self, nb::handle keys, nb::handle gradients, BoundOptimizer const& optimizer,
                  std::string const& missing, std::string const& duplicates, nb::object initial) {
    Tensor const rows = key_rows(self, keys);
    bool const has_values = !self.value_elements().empty();
    Dtype const weights = has_values ? self.value_elements()[0].dtype : Dtype::Undefined;
    Tensor const steps = to_tensor(gradients, "gradients", weights);
    UpdateOptions options{missing_from_name(missing), duplicates_from_name(duplicates), {}};
    if (!initial.is_none()) options.initial = to_tensor(initial, "initial", weights);
    return to_pair(without_gil([&] { return self.update(rows, steps, optimizer.value, options); }));
}

}  // namespace tensorhash::bindings
