// What a HashMap holds; for the files that have parts of its work.
#pragma once

#include <utility>
#include <vector>

#include "runtime/lock.hpp"
#include "table/table.hpp"

namespace tensorhash {

struct HashMap::Impl {
    Impl(Element key_element, std::vector<Element> value_elements, table::Table t)
        : key(std::move(key_element)), values(std::move(value_elements)), table(std::move(t)) {}

    Element const key;
    std::vector<Element> const values;
    table::Table table;
    mutable runtime::ReadWriteLock lock;
};

}  // namespace tensorhash
