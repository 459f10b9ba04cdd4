// A std::vector in blocks of runtime/memory.hpp: aligned to cache lines, and in memory that an
// earlier vector has warmed.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "runtime/memory.hpp"

namespace tensorhash::runtime {

template <class T>
struct BlockAllocator {
    using value_type = T;
    static_assert(alignof(T) <= kAlignment);

    BlockAllocator() = default;
    template <class U>
    BlockAllocator(BlockAllocator<U> const&) noexcept {}

    T* allocate(std::size_t count) {
        if (count > (static_cast<std::size_t>(-1) - kAlignment) / sizeof(T)) throw std::bad_alloc();
        Block::Raw const raw = Block(kAlignment + count * sizeof(T)).release();
        // A block may be larger than it was asked to be, and must be freed with its own size.
        *reinterpret_cast<std::size_t*>(raw.data) = raw.bytes;
        return reinterpret_cast<T*>(raw.data + kAlignment);
    }
    void deallocate(T* data, std::size_t) noexcept {
        unsigned char* const block = reinterpret_cast<unsigned char*>(data) - kAlignment;
        Block::adopt({block, *reinterpret_cast<std::size_t const*>(block)});
    }
    template <class U>
    bool operator==(BlockAllocator<U> const&) const noexcept {
        return true;
    }
};

template <class T>
using BlockVector = std::vector<T, BlockAllocator<T>>;

/// Leaves new elements of resize() as the memory was. They cost nothing until they are written.
template <class T>
struct UnclearedAllocator : BlockAllocator<T> {
    using BlockAllocator<T>::BlockAllocator;

    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Args>
    void construct(U* at, Args&&... args) {
        ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
};

template <class T>
using UnclearedVector = std::vector<T, UnclearedAllocator<T>>;

}  // namespace tensorhash::runtime
