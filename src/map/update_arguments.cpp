// The checks of update_arguments.hpp.
#include "map/update_arguments.hpp"

#include <algorithm>
#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::map {

CheckedBatch check_gradients(Tensor const& gradients, Element const& element, std::size_t rows,
                             Device device) {
    CheckedBatch batch = check_batch(gradients, element, "gradients", rows, device);
    if (reinterpret_cast<std::uintptr_t>(batch.data()) % byte_size(element.dtype) != 0) {
        batch.tensor = batch.tensor.clone();
    }
    return batch;
}

void require_found(unsigned char const* mask, std::size_t rows, char const* otherwise) {
    auto const missing = static_cast<std::size_t>(std::count(mask, mask + rows, 0));
    if (missing > 0) {
        throw KeyError("keys: " + std::to_string(missing) +
                       " rows are not in the table, the first is row " +
                       std::to_string(std::find(mask, mask + rows, 0) - mask) +
                       "; insert them first, or set missing to " + otherwise);
    }
}

std::optional<FillRows> check_initial(UpdateOptions const& options,
                                      std::vector<Element> const& columns, std::size_t rows,
                                      Device device) {
    if (options.initial.dtype() == Dtype::Undefined) {
        return std::nullopt;
    }
    if (options.missing != Missing::Insert) {
        throw ValueError("initial: these weights are for new keys, but missing is not \"insert\"");
    }
    if (columns.empty()) {
        throw ValueError("initial: this table has no value columns");
    }
    return check_fill(options.initial, columns[0], rows, "initial", device);
}

void fail_insert_in_update() {
    throw ValueError(
        "missing: a bounded table does not insert in update; call insert first, which returns "
        "what it evicts");
}

}  // namespace tensorhash::map
