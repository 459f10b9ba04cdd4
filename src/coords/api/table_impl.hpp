// The state of a coordinate table: its store on a device.
#pragma once

#include <memory>

#include "backend/coords_backend.hpp"
#include "map/table_lock.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"

namespace tensorhash::coords {

struct CoordTableBase::Impl : map::TableLock {
    Impl(std::unique_ptr<backend::CoordStore> new_store, Device on, bool use_double_hash)
        : TableLock({on}), device(on), store(std::move(new_store)), double_hash(use_double_hash) {}

    backend::CoordStoreInfo info() const {
        auto const guard = reading();
        return store->info();
    }

    Device const device;
    std::unique_ptr<backend::CoordStore> store;
    bool double_hash;
};

}  // namespace tensorhash::coords
