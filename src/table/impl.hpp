// What a HashMap is made of: its elements, its table and the lock around it.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "runtime/lock.hpp"
#include "table/table.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash {

struct HashMap::Impl {
    Impl(Element key_element, std::vector<Element> value_elements, table::Table t)
        : key(std::move(key_element)), values(std::move(value_elements)), table(std::move(t)) {}

    Element const key;
    std::vector<Element> const values;
    table::Table table;
    mutable runtime::ReadWriteLock lock;
};

namespace table {

using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

/// [rows, *element]
inline Shape with_rows(std::size_t rows, Shape const& element) {
    Shape shape{static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), element.begin(), element.end());
    return shape;
}

}  // namespace table
}  // namespace tensorhash
