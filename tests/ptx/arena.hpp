// Memory of the interpreted device. Every access is checked, as by memcheck and initcheck: outside
// of an allocation, after its release, or a read of bytes that were never written is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace th_ptx {

class Arena {
public:
    explicit Arena(std::size_t bytes = std::size_t{64} << 20);
    ~Arena();
    Arena(Arena const&) = delete;
    Arena& operator=(Arena const&) = delete;

    /// Throws std::bad_alloc when the arena is used up: released memory is not given out again, so
    /// that every use of it is noticed.
    void* allocate(std::size_t bytes);
    void release(void* p);

    // What the host does to the device's memory. Reads and writes are checked too.
    void write(void* to, void const* from, std::size_t bytes);
    void fill(void* to, int byte, std::size_t bytes);
    void read(void* to, void const* from, std::size_t bytes) const;
    void copy(void* to, void const* from, std::size_t bytes);

    /// Throw PtxError, with the words of `what`, if the device may not read or write there.
    void check_read(std::uint64_t address, std::size_t bytes, char const* what) const;
    void check_write(std::uint64_t address, std::size_t bytes, char const* what) const;
    void mark_written(std::uint64_t address, std::size_t bytes);

    /// The place of an address in arrays that run beside the memory.
    std::size_t offset(std::uint64_t address) const { return address - base_; }
    std::size_t bytes() const { return bytes_; }
    std::size_t live_allocations() const { return live_.size(); }

private:
    [[noreturn]] void refuse(std::uint64_t address, std::size_t bytes, char const* what,
                             std::uint8_t state) const;

    std::size_t bytes_;
    std::uint64_t base_;
    std::uint8_t* states_;  // of each byte
    std::size_t top_ = 0;
    std::map<std::uint64_t, std::size_t> live_;  // address to size
    std::map<std::uint64_t, std::size_t> released_;
};

}  // namespace th_ptx
