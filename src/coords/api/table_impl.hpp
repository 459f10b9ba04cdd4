// The state of a coordinate table: its store on a device, and its lock.
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
    Impl(std::unique_ptr<backend::CoordStore> new_store, Device on, bool use_double_hash)
        : store(std::move(new_store)), device(on), double_hash(use_double_hash) {}

    // The locks. They refuse a table on a device that failed, and in a forked child.
    Reading reading() const {
        require_device();
        return Reading(lock);
    }
    Writing writing() const {
        require_device();
        return Writing(lock);
    }
    void require_device() const {
        if (!device.is_cpu()) {
            require_usable(device, "table");
        }
    }
    backend::CoordStoreInfo info() const {
        auto const guard = reading();
        return store->info();
    }

    std::unique_ptr<backend::CoordStore> store;
    Device const device;
    bool double_hash;
    mutable runtime::ReadWriteLock lock;
};

}  // namespace tensorhash::coords
