// Shared by the bound neighbour searches: clouds from Python arrays, neighbours as a tuple.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "array_in.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::bindings {

using Csr = std::tuple<Tensor, Tensor, Tensor>;  // indices, distances, offsets

inline coords::Cloud to_cloud(nb::handle points, nb::handle batch, char const* argument,
                              char const* batch_argument) {
    return {to_tensor(points, argument), optional_tensor(batch, batch_argument)};
}

inline Csr to_csr(coords::Neighbors&& found) {
    return {std::move(found.indices), std::move(found.distances), std::move(found.offsets)};
}

}  // namespace tensorhash::bindings
