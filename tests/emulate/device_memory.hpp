// Memory of an emulated device. The host cannot touch it: pages are closed except while the device
// runs, allocations end at the end of a page, and freed pages stay closed until they are used
// again.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace tensorhash::emulate {

class DeviceMemory {
public:
    /// Reserves addresses; the system gives pages when they are touched. Throws std::bad_alloc.
    explicit DeviceMemory(std::size_t reserved);
    ~DeviceMemory();
    DeviceMemory(DeviceMemory const&) = delete;
    DeviceMemory& operator=(DeviceMemory const&) = delete;

    /// Aligned to 64 bytes. Access past the end faults at the next multiple of 64. Fresh memory has
    /// the same byte everywhere, which is not 0. Throws std::bad_alloc if all addresses are taken.
    void* allocate(std::size_t bytes);
    /// Throws std::logic_error unless allocate() returned `data` and it was not released since.
    void release(void* data);

    /// Lets the host's processor in, for the device's own work.
    void open();
    void close();
    bool is_open() const noexcept { return open_; }

    bool contains(void const* data) const noexcept;
    std::size_t live() const noexcept { return live_.size(); }

private:
    struct Pages {
        std::size_t first;
        std::size_t count;
    };
    unsigned char* address_of(Pages pages) const noexcept;
    Pages take(std::size_t count);

    unsigned char* base_;
    std::size_t reserved_;
    std::size_t top_ = 0;  // the first page that was never used
    bool open_ = false;
    std::map<void*, Pages> live_;
    std::multimap<std::size_t, std::size_t> freed_;  // number of pages, first page
};

}  // namespace tensorhash::emulate
