// The lock of a table, the same for all classes of tables.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "runtime/lock.hpp"
#include "tensorhash/device.hpp"

namespace tensorhash::map {

using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

/// Readers run together, a writer alone. Both throw a DeviceError if a device of the table failed,
/// or belongs to the parent of this forked process.
class TableLock {
public:
    explicit TableLock(std::vector<Device> devices) : devices_(std::move(devices)) {}

    Reading reading() const {
        require_devices();
        return Reading(lock_);
    }
    Writing writing() const {
        require_devices();
        return Writing(lock_);
    }

private:
    void require_devices() const {
        for (Device const device : devices_) {
            if (!device.is_cpu()) {
                require_usable(device, "table");
            }
        }
    }

    std::vector<Device> const devices_;
    mutable runtime::ReadWriteLock lock_;
};

}  // namespace tensorhash::map
