#include "ptx/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "ptx/program.hpp"

namespace th_ptx {
namespace {

constexpr std::size_t kAlign = 256;
constexpr std::size_t kGap = 256;  // between two allocations

// Of a byte. A mapping begins as zeros: outside of all allocations.
constexpr std::uint8_t kOutside = 0;
constexpr std::uint8_t kUnwritten = 1;
constexpr std::uint8_t kWritten = 2;

void* map_zeros(std::size_t bytes) {
    void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return p;
}

std::uint64_t to_address(void const* p) { return reinterpret_cast<std::uint64_t>(p); }

}  // namespace

Arena::Arena(std::size_t bytes)
    : bytes_(bytes), base_(to_address(map_zeros(bytes))),
      states_(static_cast<std::uint8_t*>(map_zeros(bytes))) {}

Arena::~Arena() {
    munmap(reinterpret_cast<void*>(base_), bytes_);
    munmap(states_, bytes_);
}

void* Arena::allocate(std::size_t bytes) {
    std::size_t const whole = (bytes + kAlign - 1) / kAlign * kAlign + kGap;
    if (bytes > bytes_ || whole > bytes_ - top_) throw std::bad_alloc();
    std::uint64_t const address = base_ + top_;
    top_ += whole;
    live_[address] = bytes;
    std::fill_n(states_ + offset(address), bytes, kUnwritten);
    return reinterpret_cast<void*>(address);
}

void Arena::release(void* p) {
    auto const at = live_.find(to_address(p));
    if (at == live_.end()) {
        throw PtxError(released_.contains(to_address(p))
                           ? "release: this memory is already released"
                           : "release: not an allocation");
    }
    std::fill_n(states_ + offset(at->first), at->second, kOutside);
    released_.insert(*at);
    live_.erase(at);
}

void Arena::write(void* to, void const* from, std::size_t bytes) {
    check_write(to_address(to), bytes, "copy from the host");
    std::memcpy(to, from, bytes);
    mark_written(to_address(to), bytes);
}

void Arena::fill(void* to, int byte, std::size_t bytes) {
    check_write(to_address(to), bytes, "fill");
    std::memset(to, byte, bytes);
    mark_written(to_address(to), bytes);
}

void Arena::read(void* to, void const* from, std::size_t bytes) const {
    check_read(to_address(from), bytes, "copy to the host");
    std::memcpy(to, from, bytes);
}

/// Bytes that were never written may be copied, but stay unwritten.
void Arena::copy(void* to, void const* from, std::size_t bytes) {
    check_write(to_address(from), bytes, "copy within the device");
    check_write(to_address(to), bytes, "copy within the device");
    std::memmove(to, from, bytes);
    std::memmove(states_ + offset(to_address(to)), states_ + offset(to_address(from)), bytes);
}

void Arena::check_read(std::uint64_t address, std::size_t bytes, char const* what) const {
    std::size_t const at = offset(address);
    if (at >= bytes_ || bytes > bytes_ - at) refuse(address, bytes, what, kOutside);
    for (std::size_t i = 0; i < bytes; ++i) {
        if (states_[at + i] != kWritten) refuse(address, bytes, what, states_[at + i]);
    }
}

void Arena::check_write(std::uint64_t address, std::size_t bytes, char const* what) const {
    std::size_t const at = offset(address);
    if (at >= bytes_ || bytes > bytes_ - at) refuse(address, bytes, what, kOutside);
    for (std::size_t i = 0; i < bytes; ++i) {
        if (states_[at + i] == kOutside) refuse(address, bytes, what, kOutside);
    }
}

void Arena::mark_written(std::uint64_t address, std::size_t bytes) {
    std::fill_n(states_ + offset(address), bytes, kWritten);
}

void Arena::refuse(std::uint64_t address, std::size_t bytes, char const* what,
                   std::uint8_t state) const {
    auto const nearest = [&](std::map<std::uint64_t, std::size_t> const& allocations) {
        auto const next = allocations.upper_bound(address);
        return next == allocations.begin() ? allocations.end() : std::prev(next);
    };
    auto const live = nearest(live_);
    auto const gone = nearest(released_);
    bool const is_released =
        gone != released_.end() && (live == live_.end() || live->first < gone->first);
    std::string where = "outside of all allocations";
    if (is_released || live != live_.end()) {
        auto const& [start, size] = is_released ? *gone : *live;
        where = std::to_string(address - start) + " bytes after the start of " +
                (is_released ? "released memory" : "an allocation") + " of " +
                std::to_string(size) + " bytes";
    }
    throw PtxError(std::string(state == kUnwritten ? "unwritten read: " : "out of bounds: ") +
                   std::to_string(bytes) + " bytes, " + where + ", in " + what);
}

}  // namespace th_ptx
