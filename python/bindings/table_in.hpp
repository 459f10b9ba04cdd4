// Shared by the bound tables: converts Python objects to elements and batches.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash::bindings {

using Arrays = nb::typed<nb::sequence, nb::object>;
using ElementSpec = std::pair<std::string, Shape>;  // dtype name, element shape
using Pair = std::pair<Tensor, Tensor>;             // a tuple of two in Python

inline Element to_element(ElementSpec const& spec) {
    return {dtype_from_name(spec.first), spec.second};
}

inline std::vector<Element> to_elements(std::vector<ElementSpec> const& specs) {
    std::vector<Element> elements;
    elements.reserve(specs.size());
    for (ElementSpec const& spec : specs) elements.push_back(to_element(spec));
    return elements;
}

inline ElementSpec to_spec(Element const& element) {
    return {std::string(name(element.dtype)), element.shape};
}

inline std::vector<ElementSpec> to_specs(std::vector<Element> const& elements) {
    std::vector<ElementSpec> specs;
    for (Element const& element : elements) specs.push_back(to_spec(element));
    return specs;
}

template <class Result>
Pair to_pair(Result&& located) {
    return {std::move(located.indices), std::move(located.mask)};
}

template <class Map>
Tensor key_rows(Map const& self, nb::handle keys) {
    return to_tensor(keys, "keys", self.key_element().dtype);
}

// `elements` are for messages. The core checks the number of arrays.
inline std::vector<Tensor> to_tensors(Arrays const& arrays, char const* argument,
                                      std::vector<Element> const& elements = {}) {
    std::size_t const count = nb::len(arrays);
    std::vector<Tensor> tensors;
    tensors.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::string label = argument;
        if (count > 1) label += "[" + std::to_string(i) + "]";
        Dtype const wanted = i < elements.size() ? elements[i].dtype : Dtype::Undefined;
        tensors.push_back(to_tensor(arrays[i], label.c_str(), wanted));
    }
    return tensors;
}

inline std::vector<Reduce> to_reduces(std::vector<std::string> const& words) {
    std::vector<Reduce> reduces;
    reduces.reserve(words.size());
    for (std::string const& word : words) reduces.push_back(reduce_from_name(word));
    return reduces;
}

/// Calls a verb that takes keys and values, in three steps as in every batch method: convert the
/// arrays, work without the GIL, return tensors.
template <class Map, class Verb>
auto keys_and_values(Map const& self, nb::handle keys, Arrays const& values, Verb&& verb) {
    Tensor const rows = key_rows(self, keys);
    std::vector<Tensor> const columns = to_tensors(values, "values", self.value_elements());
    return without_gil([&] { return verb(rows, columns); });
}

// Bytes of a pickle or of another table need no limit: a pickle can run any code anyway.
inline constexpr std::uint64_t kNoLimit = UINT64_MAX;

// File names are bytes on POSIX and need not be UTF-8.
inline std::string path_of(nb::bytes const& file_name) {
    return {file_name.c_str(), file_name.size()};
}

}  // namespace tensorhash::bindings
