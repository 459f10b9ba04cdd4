// Memory for many small arrays that are freed together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/memory.hpp"

namespace tensorhash::runtime {

/// Large blocks, which are kept for reuse. The heap would return its pages after every call. For
/// one thread.
class Arena {
public:
    /// Uninitialised memory for `count` elements, aligned to 64 bytes. Throws std::bad_alloc.
    template <class T>
    T* take(std::size_t count) {
        std::size_t const bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        if (blocks_.empty() || blocks_.back().bytes() - used_ < bytes) {
            blocks_.emplace_back(std::max(bytes, kBlockBytes));
            used_ = 0;
        }
        return reinterpret_cast<T*>(blocks_.back().data() + std::exchange(used_, used_ + bytes));
    }

private:
    static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

    std::vector<Block> blocks_;
    std::size_t used_ = 0;  // of the last block
};

}  // namespace tensorhash::runtime
