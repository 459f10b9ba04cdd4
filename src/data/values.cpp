// Checks of value arrays.
#include "data/values.hpp"

#include "map/arguments.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::data {

Element element_of_values(Tensor const& values, std::string const& argument) {
    return map::element_of(values, argument);
}

Tensor check_values(Tensor const& values, std::size_t rows, std::string const& argument) {
    require_usable(values.device(), argument);
    if (values.rank() == 0 || values.shape()[0] != static_cast<std::int64_t>(rows)) {
        throw ValueError(argument + ": expected " + std::to_string(rows) +
                         " rows, as many as keys, got shape " + to_string(values.shape()));
    }
    return values.rank() == 1 ? values : values.contiguous();
}

std::vector<Column> columns_of_all(std::vector<Tensor> const& arrays) {
    std::vector<Column> all;
    for (Tensor const& array : arrays) {
        std::vector<Column> const columns = columns_of(array);
        all.insert(all.end(), columns.begin(), columns.end());
    }
    return all;
}

Tensor count_distinct(std::span<DistinctValues const> distinct, Output const& output,
                      std::size_t groups) {
    Tensor out = Tensor::empty(with_rows(groups, output.values.shape), Dtype::Int64);
    for (std::size_t i = 0; i < distinct.size(); ++i) {
        distinct[i].count(groups, distinct.size(), static_cast<std::int64_t*>(out.data()) + i);
    }
    return out;
}

}  // namespace tensorhash::data
