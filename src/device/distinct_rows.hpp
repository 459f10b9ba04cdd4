// Distinct rows on a device, collected chunk by chunk in a scratch table: in order of first
// occurrence, because these are its buffer indices.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/core.hpp"
#include "device/keys.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::device {

template <class Queue>
class DistinctRows {
public:
    DistinctRows(Queue& queue, Element const& element, std::uint64_t expected)
        : queue_(&queue), format_(format_of(element)),
          table_(queue, format_, std::max<std::uint64_t>(expected, 1), runtime::new_seed()) {}

    void add(void const* rows, std::uint64_t count) {
        Array<Queue, std::uint32_t> const indices(*queue_, count);
        Array<Queue, unsigned char> const mask(*queue_, count);
        Array<Queue, unsigned char> copy;
        backend::KeyRows const keys{static_cast<unsigned char const*>(rows), count};
        table_.insert(aligned_keys(*queue_, keys, format_, copy), to_rows(count),
                      {indices.data(), mask.data()});
    }
    /// Waits.
    std::uint64_t count() const { return table_.read_state().top; }
    Column<Queue> const& rows() const noexcept { return table_.buffers().keys; }

private:
    Queue* queue_;
    step::KeyFormat format_;
    Core<Queue> table_;
};

}  // namespace tensorhash::device
