// The members of a HashMap, for the files that implement it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/table_backend.hpp"
#include "map/results.hpp"
#include "runtime/lock.hpp"

namespace tensorhash {

struct HashMap::Impl {
    Impl(Element key_element, std::vector<Element> value_elements,
         std::unique_ptr<backend::TableBackend> t)
        : key(std::move(key_element)), values(std::move(value_elements)), table(std::move(t)) {}

    Element const key;
    std::vector<Element> const values;
    std::unique_ptr<backend::TableBackend> table;
    mutable runtime::ReadWriteLock lock;

    /// Calls verb(keys, values, answers) under the write lock. Batches in the table's own memory
    /// are copied first.
    template <class Verb>
    Located write(map::KeysAndValues batch, Verb&& verb) {
        Located located = map::make_located(batch.keys.rows);
        map::Writing const guard(lock);
        std::vector<backend::Bytes> const columns = map::detach_from(*table, batch);
        verb(map::key_rows(batch.keys), backend::ValueRows{columns}, map::answers(located));
        return located;
    }
    struct UpdateCall;
    Located update(UpdateCall call, UpdateOptions const& options);
};

}  // namespace tensorhash
