// Huge pages for large fresh outputs. TensorFlow's allocator gives memory that no one has touched: with small pages, most
// of a large lookup is spent in page faults.
#ifndef TENSORHASH_TENSORFLOW_PAGES_H_
#define TENSORHASH_TENSORFLOW_PAGES_H_

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tensorhash_tf {

/// A wish: without huge pages everything works, more slowly. Only whole huge pages inside the block are named, so that
/// nobody else's memory is meant.
inline void want_huge_pages(void* data, std::int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::uintptr_t kHugePage = std::uintptr_t{1} << 21;
    auto const address = reinterpret_cast<std::uintptr_t>(data);
    std::uintptr_t const begin = (address + kHugePage - 1) / kHugePage * kHugePage;
    std::uintptr_t const end =
        (address + static_cast<std::uintptr_t>(bytes)) / kHugePage * kHugePage;
    if (begin + 2 * kHugePage <= end) {
        madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
#else
    (void)data;
    (void)bytes;
#endif
}

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_PAGES_H_
