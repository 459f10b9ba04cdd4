// The members of a HashMap, for the files that implement it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/table_backend.hpp"
#include "map/arguments.hpp"
#include "map/results.hpp"
#include "map/table_lock.hpp"

namespace tensorhash {

struct HashMap::Impl : map::TableLock {
    Impl(Element key_element, std::vector<Element> value_elements,
         std::unique_ptr<backend::TableBackend> t)
        : TableLock({t->device()}), key(std::move(key_element)), values(std::move(value_elements)),
          table(std::move(t)) {}

    Element const key;
    std::vector<Element> const values;
    std::unique_ptr<backend::TableBackend> table;

    /// Throws a DeviceError that names the call if the table is not on the CPU.
    void require_cpu(char const* call) const {
        map::require_table_on_cpu(table->device(), call, ".cpu(), in C++ to()");
    }

    /// Calls verb(keys, values, answers) under the write lock. Batches in the table's own memory
    /// are copied first.
    template <class Verb>
    Located write(map::KeysAndValues batch, Verb&& verb) {
        Located located = map::make_located(batch.keys.rows, map::device_of(*table));
        auto const guard = writing();
        std::vector<backend::Bytes> const columns = map::detach_from(*table, batch);
        verb(map::key_rows(batch.keys), backend::ValueRows{columns}, map::answers(located));
        map::mark_read(batch);
        return map::deliver(std::move(located), batch.keys.home);
    }
    struct UpdateCall;
    Located update(UpdateCall call, UpdateOptions const& options);
};

}  // namespace tensorhash
