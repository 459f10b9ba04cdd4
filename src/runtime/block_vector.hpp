// A std::vector in blocks of runtime/memory.hpp: aligned to cache lines, and in memory that an
// earlier vector has warmed.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/memory.hpp"

namespace tensorhash::runtime {

template <class T>
struct BlockAllocator {
    using value_type = T;

    BlockAllocator() = default;
    template <class U>
    BlockAllocator(BlockAllocator<U> const&) noexcept {}

    T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
        return reinterpret_cast<T*>(Block(count * sizeof(T)).release().data);
    }
    void deallocate(T* data, std::size_t count) noexcept {
        Block::adopt({reinterpret_cast<unsigned char*>(data), count * sizeof(T)});
    }
    template <class U>
    bool operator==(BlockAllocator<U> const&) const noexcept {
        return true;
    }
};

template <class T>
using BlockVector = std::vector<T, BlockAllocator<T>>;

}  // namespace tensorhash::runtime
