// MemoryUsage: the memory of a table, by purpose.
#pragma once

#include <cstddef>

namespace tensorhash {

/// In bytes, without the table object itself.
struct MemoryUsage {
    std::size_t keys = 0;
    std::size_t values = 0;
    std::size_t index = 0;
    std::size_t bookkeeping = 0;  ///< free stack and live bits
    std::size_t total() const noexcept { return keys + values + index + bookkeeping; }
};

}  // namespace tensorhash
