// The device of a coordinate table, and its lock.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "runtime/lock.hpp"
#include "tensorhash/device.hpp"

namespace tensorhash::coords {

using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

struct DeviceLock {
    explicit DeviceLock(Device on) : device(on) {}

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

    Device const device;
    mutable runtime::ReadWriteLock lock;
};

}  // namespace tensorhash::coords
