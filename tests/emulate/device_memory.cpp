#include "emulate/device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace tensorhash::emulate {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 64;
constexpr int kFresh = 0xcd;

}  // namespace

DeviceMemory::DeviceMemory(std::size_t reserved) : reserved_(reserved) {
    void* const base =
        mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        throw std::bad_alloc();
    }
    base_ = static_cast<unsigned char*>(base);
}

DeviceMemory::~DeviceMemory() { munmap(base_, reserved_); }

unsigned char* DeviceMemory::address_of(Pages pages) const noexcept {
    return base_ + pages.first * kPage;
}

DeviceMemory::Pages DeviceMemory::take(std::size_t count) {
    if (auto const again = freed_.find(count); again != freed_.end()) {
        Pages const pages{again->second, count};
        freed_.erase(again);
        return pages;
    }
    if (count >= reserved_ / kPage - top_) {
        throw std::bad_alloc();
    }
    Pages const pages{top_, count};
    top_ += count + 1;  // a page between any two allocations stays closed
    return pages;
}

void* DeviceMemory::allocate(std::size_t bytes) {
    if (bytes > reserved_) {
        throw std::bad_alloc();
    }
    Pages const pages = take(std::max<std::size_t>((bytes + kPage - 1) / kPage, 1));
    unsigned char* const begin = address_of(pages);
    std::size_t const room = pages.count * kPage;
    mprotect(begin, room, PROT_READ | PROT_WRITE);
    std::memset(begin, kFresh, room);
    if (!open_) {
        mprotect(begin, room, PROT_NONE);
    }
    void* const data = begin + (room - bytes) / kAlignment * kAlignment;
    live_[data] = pages;
    return data;
}

void DeviceMemory::release(void* data) {
    auto const found = live_.find(data);
    if (found == live_.end()) {
        throw std::logic_error("release: nothing is allocated at this address");
    }
    Pages const pages = found->second;
    mprotect(address_of(pages), pages.count * kPage, PROT_NONE);
    madvise(address_of(pages), pages.count * kPage, MADV_DONTNEED);
    freed_.emplace(pages.count, pages.first);
    live_.erase(found);
}

void DeviceMemory::open() {
    open_ = true;
    for (auto const& [data, pages] : live_) {
        mprotect(address_of(pages), pages.count * kPage, PROT_READ | PROT_WRITE);
    }
}

void DeviceMemory::close() {
    open_ = false;
    mprotect(base_, top_ * kPage, PROT_NONE);
}

bool DeviceMemory::contains(void const* data) const noexcept {
    auto const* const byte = static_cast<unsigned char const*>(data);
    return byte >= base_ && byte < base_ + reserved_;
}

}  // namespace tensorhash::emulate
