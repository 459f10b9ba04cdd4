// Small blocks come from the heap, large ones from mapped memory. Freed large blocks are kept for a
// while.
// Over 400 lines: all functions share the lists of kept blocks and their lock.
#include "runtime/memory.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "runtime/cgroup.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/memory.hpp"

#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

namespace tensorhash::runtime {
namespace {

constexpr std::size_t kSmallPage = 4096;
constexpr std::size_t kPages = std::size_t{64} << 10;  // a multiple of every page size on Linux
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMapped = std::size_t{256} << 10;  // blocks from this size on are mapped
constexpr std::size_t kMostKept = std::size_t{1} << 30;
constexpr std::size_t kSlack = std::size_t{256} << 10;
constexpr std::size_t kDivisible = std::size_t{4}
                                   << 20;  // kept blocks from this size on are cut up

std::size_t rounded(std::size_t bytes, std::size_t to) {
    if (bytes > static_cast<std::size_t>(-1) / 2) {
        throw std::bad_alloc();
    }
    return (bytes + to - 1) / to * to;
}

/// The machine's memory, or the part of it that this process may use.
std::size_t machine_memory() {
    std::size_t const bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return std::min(bytes, cgroup_memory_limit());
}

/// Freed mapped blocks, oldest first. The first touch of a page costs more than all later work on
/// it, so results, scratch and tables reuse freed blocks. Bounded: the rest goes back to the
/// system.
class Cache {
public:
    struct Entry {
        void* data = nullptr;
        std::size_t bytes = 0;
        bool seamed = false;
    };

    Cache() { blocks_.reserve(kMaxBlocks); }

    /// The smallest block of at least `bytes` and at most a quarter more; of equal sizes the
    /// newest. An empty entry if there is none.
    Entry take(std::size_t bytes) {
        std::lock_guard lock(mutex_);
        std::size_t const at = fitting(bytes);
        return at < blocks_.size() ? remove(at) : Entry{};
    }

    bool has(std::size_t bytes) {
        std::lock_guard lock(mutex_);
        return fitting(bytes) < blocks_.size();
    }

    /// Whole huge pages from the start of the largest block, at most `most` bytes. For a block that
    /// grows: no kept block need have the right size. An empty entry if all blocks are small.
    Entry take_pages(std::size_t most) {
        std::lock_guard lock(mutex_);
        auto const largest =
            std::max_element(blocks_.begin(), blocks_.end(),
                             [](Entry const& a, Entry const& b) { return a.bytes < b.bytes; });
        if (most < kHugePage || largest == blocks_.end() || largest->bytes < kDivisible) {
            return {};
        }
        auto const at = static_cast<std::size_t>(largest - blocks_.begin());
        std::size_t const bytes = std::min(most, largest->bytes) / kHugePage * kHugePage;
        if (largest->bytes - bytes < kMapped) {
            Entry const whole = remove(at);
            if (whole.bytes > bytes) {
                munmap(static_cast<char*>(whole.data) + bytes, whole.bytes - bytes);
            }
            return {whole.data, bytes, whole.seamed};
        }
        Entry const front{largest->data, bytes, largest->seamed};
        largest->data = static_cast<char*>(largest->data) + bytes;
        largest->bytes -= bytes;
        return front;
    }

    /// Keeps the block, or returns false: then the caller must unmap it.
    bool keep(Entry const& entry) noexcept {
        std::lock_guard lock(mutex_);
        if (entry.bytes > limit_ / 2) {
            return false;
        }
        // Large blocks make room among themselves first, so that a freed large table does not evict
        // the warm memory of results and scratch.
        if (is_large(entry.bytes)) {
            drop_oldest(entry.bytes, limit_ / 4 * 3, true);
        }
        drop_oldest(entry.bytes, limit_, false);
        if (blocks_.size() == kMaxBlocks) {
            unmap(remove(0));
        }
        blocks_.push_back(entry);
        return true;
    }

    std::size_t release() noexcept {
        std::lock_guard lock(mutex_);
        std::size_t const freed = held(false);
        drop_oldest(0, 0, false);
        return freed;
    }

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    static constexpr std::size_t kMaxBlocks = 128;

    static void unmap(Entry const& entry) noexcept { munmap(entry.data, entry.bytes); }
    bool is_large(std::size_t bytes) const { return bytes > limit_ / 8; }

    std::size_t fitting(std::size_t bytes) const {
        std::size_t best = blocks_.size();
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            std::size_t const here = blocks_[i].bytes;
            if (here >= bytes && here <= bytes + bytes / 4 &&
                (best == blocks_.size() || here <= blocks_[best].bytes)) {
                best = i;
            }
        }
        return best;
    }

    Entry remove(std::size_t at) {
        Entry const entry = blocks_[at];
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
        return entry;
    }

    std::size_t held(bool only_large) const {
        std::size_t bytes = 0;
        for (Entry const& entry : blocks_) {
            bytes += !only_large || is_large(entry.bytes) ? entry.bytes : 0;
        }
        return bytes;
    }

    /// Unmaps blocks, the oldest first, until those left and `bytes` more are within `most`.
    void drop_oldest(std::size_t bytes, std::size_t most, bool only_large) {
        std::size_t left = held(only_large);
        for (std::size_t at = 0; at < blocks_.size() && left + bytes > most;) {
            if (only_large && !is_large(blocks_[at].bytes)) {
                ++at;
                continue;
            }
            Entry const entry = remove(at);
            unmap(entry);
            left -= entry.bytes;
        }
    }

    std::size_t const limit_ = std::min(kMostKept, machine_memory() / 16);
    std::mutex mutex_;
    std::vector<Entry> blocks_;
};

// Never destroyed: static destructors that run later than ours may free tensors.
Cache& cache() {
    static Cache* const the_cache = [] {
        static Cache* const made = new Cache;
        pthread_atfork([] { made->lock(); }, [] { made->unlock(); }, [] { made->unlock(); });
        return made;
    }();
    return *the_cache;
}

unsigned char* map_block(std::size_t bytes) {
    // Extra room for alignment: huge pages need addresses that are multiples of their size.
    bool const huge = bytes >= kHugePage;
    std::size_t const room = bytes + (huge ? kHugePage : 0);
    auto const try_map = [&] {
        return mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    void* raw = try_map();
    if (raw == MAP_FAILED && cache().release() > 0) {
        raw = try_map();
    }
    if (raw == MAP_FAILED) {
        throw std::bad_alloc();
    }
    if (!huge) {
        return static_cast<unsigned char*>(raw);
    }
    auto const address = reinterpret_cast<std::uintptr_t>(raw);
    std::uintptr_t const aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
    if (aligned > address) {
        munmap(raw, aligned - address);
    }
    if (std::size_t const tail = address + room - (aligned + bytes); tail > 0) {
        munmap(static_cast<char*>(raw) + (aligned + bytes - address), tail);
    }
    void* const data = static_cast<char*>(raw) + (aligned - address);
    // Only advice: without huge pages everything works, but more slowly.
    madvise(data, bytes, MADV_HUGEPAGE);
    return static_cast<unsigned char*>(data);
}

/// Commits fresh pages on all threads. The system zeroes them.
void commit(unsigned char* data, std::size_t bytes) {
    std::size_t const pages = (bytes + kHugePage - 1) / kHugePage;
    std::size_t const tasks = std::min<std::size_t>(pages, 64);
    run_tasks(tasks, [&](std::size_t task) {
        std::size_t const begin = pages * task / tasks * kHugePage;
        std::size_t const end = std::min(bytes, pages * (task + 1) / tasks * kHugePage);
        if (begin < end && madvise(data + begin, end - begin, MADV_POPULATE_WRITE) != 0) {
            // Older systems: touch each page.
            for (std::size_t at = begin; at < end; at += kSmallPage) {
                static_cast<unsigned char volatile*>(data)[at] = 0;
            }
        }
    });
}

/// Can one mremap move pages that several calls mapped (Linux 6.17 and newer)? Tries it out once.
bool moves_across_seams() {
    static bool const does = [] {
        std::size_t const page = kPages;
        void* const all = mmap(nullptr, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) {
            return false;
        }
        auto* const from = static_cast<unsigned char*>(all);
        bool const moved = mprotect(from, page, PROT_READ) == 0 &&
                           mremap(from, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED,
                                  from + 2 * page) != MAP_FAILED;
        // After the move, another thread may already have mapped the old range.
        munmap(moved ? from + 2 * page : from, 2 * page);
        return moved;
    }();
    return does;
}

/// Commits the fresh range [begin, end) of a block that grows. Moves warm pages of kept blocks
/// there, as far as there are any: they cost a fraction of fresh ones. Fresh pages are zeros.
void commit_growth(unsigned char* begin, unsigned char* end, Fill fill) {
    auto const up = [](unsigned char* p) {
        auto const past = reinterpret_cast<std::uintptr_t>(p) % kHugePage;
        return p + (past == 0 ? 0 : kHugePage - past);
    };
    unsigned char* next = up(begin);
    if (next >= end || !moves_across_seams()) {
        commit(begin, static_cast<std::size_t>(end - begin));
        return;
    }
    commit(begin, static_cast<std::size_t>(next - begin));
    for (;;) {
        Cache::Entry const warm = cache().take_pages(static_cast<std::size_t>(end - next));
        if (warm.data == nullptr) {
            break;
        }
        if (mremap(warm.data, warm.bytes, warm.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, next) ==
            MAP_FAILED) {
            // mremap may have unmapped the range already. Map it again, unless another thread has
            // mapped something there.
            munmap(warm.data, warm.bytes);
            void* const again = mmap(next, warm.bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (again == MAP_FAILED && errno != EEXIST) {
                munmap(begin, static_cast<std::size_t>(next - begin));
                throw std::bad_alloc();
            }
            break;
        }
        if (fill == Fill::Zero) {
            zero_bytes(next, warm.bytes);
        }
        next += warm.bytes;
    }
    commit(next, static_cast<std::size_t>(end - next));
}

}  // namespace

Block::Block(std::size_t bytes, Fill fill, std::size_t kept) {
    assert(kept <= bytes);
    // Round before comparing: the destructor knows only the rounded size and must decide the same
    // way.
    bytes_ = rounded(std::max<std::size_t>(bytes, 1), kAlignment);
    if (bytes_ < kMapped) {
        data_ = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, bytes_));
        if (data_ == nullptr) {
            throw std::bad_alloc();
        }
        if (fill == Fill::Zero) {
            std::memset(data_ + kept, 0, bytes_ - kept);
        }
        return;
    }
    // Rounding up to kSlack lets scratch and results of nearly equal batches share a block.
    // Untouched pages cost nothing.
    bytes_ = rounded(bytes, fill == Fill::None ? kSlack : kPages);
    if (Cache::Entry const warm = cache().take(bytes_); warm.data != nullptr) {
        data_ = static_cast<unsigned char*>(warm.data);
        bytes_ = warm.bytes;
        seamed_ = warm.seamed;
        if (fill != Fill::None) {
            trim(bytes);  // tables keep their blocks: a quarter more would be a waste
        }
        if (fill == Fill::Zero) {
            zero_bytes(data_ + kept, bytes_ - kept);
        }
        return;
    }
    data_ = map_block(bytes_);
    if (fill != Fill::None) {
        commit(data_, bytes_);
    }
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
      seamed_(other.seamed_) {}

Block& Block::operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(seamed_, other.seamed_);
    return *this;
}

Block::~Block() {
    if (data_ == nullptr) {
        return;
    }
    if (bytes_ < kMapped) {
        std::free(data_);
    } else if (!cache().keep({data_, bytes_, seamed_})) {
        munmap(data_, bytes_);
    }
}

std::size_t whole_huge_pages(std::size_t bytes) {
    return bytes > kHugePage ? rounded(bytes, kHugePage) : bytes;
}

bool Block::grow(std::size_t bytes, Fill fill) {
    if (bytes_ >= bytes) {
        return true;
    }
    std::size_t const larger = rounded(whole_huge_pages(bytes), kPages);
    if (bytes_ < kMapped || (seamed_ && !moves_across_seams())) {
        return false;
    }
    // A large step: a copy to warm memory is better than fresh memory for the rest.
    if (larger - bytes_ >= bytes_ / 2 && cache().has(larger)) {
        return false;
    }
    unsigned char* const to = map_block(larger);
    if (mremap(data_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
        // Leave the first part of `to` alone: mremap may have unmapped it, and another thread may
        // have mapped it since.
        munmap(to + bytes_, larger - bytes_);
        return false;
    }
    data_ = to;
    commit_growth(to + bytes_, to + larger, fill);
    bytes_ = larger;
    seamed_ = true;
    return true;
}

void Block::shrink(std::size_t bytes) noexcept {
    if (bytes < bytes_) {
        munmap(data_ + bytes, bytes_ - bytes);
        bytes_ = bytes;
    }
}

void Block::trim(std::size_t bytes) noexcept {
    // A block that is not mapped, or that would look like one, stays as it is.
    std::size_t const least = std::max((bytes + kPages - 1) / kPages * kPages, kMapped);
    if (bytes_ >= kMapped && bytes < bytes_) {
        shrink(least);
    }
}

bool Block::can_trim(std::size_t bytes) const noexcept {
    return bytes_ >= kMapped && bytes >= kMapped;
}

Block Block::adopt(Raw raw) noexcept {
    Block block;
    block.data_ = raw.data;
    block.bytes_ = raw.bytes;
    block.seamed_ = true;  // unknown: assume the worst
    return block;
}

Block::Raw Block::release() noexcept {
    return {std::exchange(data_, nullptr), std::exchange(bytes_, 0)};
}

std::shared_ptr<Block> make_shared_block(std::size_t bytes, Fill fill, std::size_t kept) {
    return std::make_shared<Block>(bytes, fill, kept);
}

}  // namespace tensorhash::runtime

namespace tensorhash {

std::size_t release_memory() noexcept { return runtime::cache().release(); }

}  // namespace tensorhash
