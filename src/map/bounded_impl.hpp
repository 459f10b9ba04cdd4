// The members of a BoundedHashMap, for the files that implement it.
#pragma once

#include <utility>
#include <vector>

#include "map/results.hpp"
#include "map/table_lock.hpp"
#include "table/bounded_batch.hpp"
#include "tensorhash/bounded_map.hpp"

namespace tensorhash {

struct BoundedHashMap::Impl : map::TableLock {
    Impl(Element key_element, std::vector<Element> value_elements, table::Table entries,
         table::Ledger l, Device on)
        : TableLock({on}), key(std::move(key_element)), values(std::move(value_elements)),
          table(std::move(entries)), ledger(std::move(l)), device(on) {}

    Element const key;
    std::vector<Element> const values;  // the caller's; the table has two more, hidden columns
    table::Table table;
    table::Ledger ledger;
    Device const device;  // the CPU: other devices have no bounded tables

    table::BoundedState state() noexcept { return {table, ledger}; }
    Admitted insert(map::KeysAndValues batch, std::vector<Reduce> const& reduce,
                    Tensor const& scores);
};

}  // namespace tensorhash
