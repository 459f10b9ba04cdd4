// What a coordinate table holds: its store on a device, and the lock.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "backend/coords_backend.hpp"
#include "runtime/lock.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"

namespace tensorhash::coords {

using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

struct CoordTableBase::Impl {
    Impl(std::unique_ptr<backend::CoordStore> made, bool double_hash_too)
        : store(std::move(made)), double_hash(double_hash_too) {}

    backend::CoordStoreInfo info() const {
        Reading const guard(lock);
        return store->info();
    }

    std::unique_ptr<backend::CoordStore> store;
    bool double_hash;
    mutable runtime::ReadWriteLock lock;
};

}  // namespace tensorhash::coords
