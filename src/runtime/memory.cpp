// Blocks from the heap when small, from mapped memory when large; large ones are kept for a while after they are freed.
#include "runtime/memory.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "runtime/parallel.hpp"

#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

namespace tensorhash::runtime {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMapped = std::size_t{1} << 20;  // blocks from this size on are mapped
constexpr std::size_t kSlack = std::size_t{256} << 10;
constexpr std::size_t kCopyGrain = std::size_t{1} << 20;

std::size_t rounded(std::size_t bytes, std::size_t to) {
    if (bytes > static_cast<std::size_t>(-1) / 2) {
        throw std::bad_alloc();
    }
    return (bytes + to - 1) / to * to;
}

/// Freed mapped blocks, newest last. The first touch of a page costs more than all we do with it afterwards, so
/// results and scratch of the next batch get the memory of the last one. Bounded: the rest goes back to the system.
class Cache {
public:
    /// A block of at least `bytes` and not much more, or null.
    void* take(std::size_t bytes, std::size_t& got) {
        std::lock_guard lock(mutex_);
        for (std::size_t i = blocks_.size(); i-- > 0;) {
            if (blocks_[i].bytes >= bytes && blocks_[i].bytes <= bytes + bytes / 4) {
                Entry const entry = blocks_[i];
                blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
                held_ -= entry.bytes;
                got = entry.bytes;
                return entry.data;
            }
        }
        return nullptr;
    }

    /// Keeps the block, or returns false: then it is the caller's to unmap.
    bool keep(void* data, std::size_t bytes) noexcept {
        std::lock_guard lock(mutex_);
        if (bytes > limit() / 2) {
            return false;
        }
        // The oldest go first, also when there are too many: blocks that nobody asks for must not fill the place.
        while (held_ + bytes > limit() || blocks_.size() == blocks_.capacity()) {
            munmap(blocks_.front().data, blocks_.front().bytes);
            held_ -= blocks_.front().bytes;
            blocks_.erase(blocks_.begin());
        }
        blocks_.push_back({data, bytes});
        held_ += bytes;
        return true;
    }

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

    Cache() { blocks_.reserve(16); }

private:
    struct Entry {
        void* data;
        std::size_t bytes;
    };

    static std::size_t limit() {
        static std::size_t const bytes = std::min<std::size_t>(
            std::size_t{256} << 20, static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                                        static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 64);
        return bytes;
    }

    std::mutex mutex_;
    std::vector<Entry> blocks_;
    std::size_t held_ = 0;
};

// Never destroyed: tensors may be freed by static destructors that run later than ours.
Cache& cache() {
    static Cache* const the_cache = [] {
        static Cache* const made = new Cache;
        pthread_atfork([] { made->lock(); }, [] { made->unlock(); }, [] { made->unlock(); });
        return made;
    }();
    return *the_cache;
}

void* map_block(std::size_t bytes) {
    // Room to align by hand: huge pages need addresses that are multiples of their size.
    std::size_t const room = bytes + kHugePage;
    void* const raw =
        mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        throw std::bad_alloc();
    }
    auto const address = reinterpret_cast<std::uintptr_t>(raw);
    std::uintptr_t const aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
    if (aligned > address) {
        munmap(raw, aligned - address);
    }
    if (std::size_t const tail = address + room - (aligned + bytes); tail > 0) {
        munmap(reinterpret_cast<void*>(aligned + bytes), tail);
    }
    void* const data = reinterpret_cast<void*>(aligned);
    madvise(data, bytes,
            MADV_HUGEPAGE);  // a wish; without huge pages everything works, more slowly
    return data;
}

/// Commits fresh pages, which the kernel gives zeroed, on all threads.
void commit(unsigned char* data, std::size_t bytes) {
    std::size_t const pages = (bytes + kHugePage - 1) / kHugePage;
    std::size_t const tasks = std::min<std::size_t>(pages, 64);
    run_tasks(tasks, [&](std::size_t task) {
        std::size_t const begin = pages * task / tasks * kHugePage;
        std::size_t const end = std::min(bytes, pages * (task + 1) / tasks * kHugePage);
        if (begin < end && madvise(data + begin, end - begin, MADV_POPULATE_WRITE) != 0) {
            for (std::size_t at = begin; at < end; at += 4096) {  // older kernels: touch each page
                static_cast<unsigned char volatile*>(data)[at] = 0;
            }
        }
    });
}

}  // namespace

Block::Block(std::size_t bytes, Fill fill) {
    // Rounded before it is compared: the destructor knows only the rounded size, and must come to the same verdict.
    bytes_ = rounded(std::max<std::size_t>(bytes, 1), kAlignment);
    if (bytes_ < kMapped) {
        data_ = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, bytes_));
        if (data_ == nullptr) {
            throw std::bad_alloc();
        }
        if (fill == Fill::Zero) {
            std::memset(data_, 0, bytes_);
        }
        return;
    }
    // Scratch and results of nearly equal batches share a block; pages that nobody touches cost nothing.
    bytes_ = rounded(bytes, fill == Fill::None ? kSlack : 4096);
    std::size_t got = 0;
    if (void* const warm = cache().take(bytes_, got)) {
        data_ = static_cast<unsigned char*>(warm);
        bytes_ = got;
        if (fill == Fill::Zero) {
            zero_bytes(data_, bytes_);
        }
        return;
    }
    data_ = static_cast<unsigned char*>(map_block(bytes_));
    if (fill == Fill::Zero) {
        commit(data_, bytes_);
    }
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Block::~Block() {
    if (data_ == nullptr) {
        return;
    }
    if (bytes_ < kMapped) {
        std::free(data_);
    } else if (!cache().keep(data_, bytes_)) {
        munmap(data_, bytes_);
    }
}

std::shared_ptr<Block> make_shared_block(std::size_t bytes, Fill fill) {
    return std::make_shared<Block>(bytes, fill);
}

void copy_bytes(void* to, void const* from, std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    for_ranges(bytes, kCopyGrain, [&](std::size_t begin, std::size_t end) {
        std::memcpy(static_cast<unsigned char*>(to) + begin,
                    static_cast<unsigned char const*>(from) + begin, end - begin);
    });
}

void zero_bytes(void* at, std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    for_ranges(bytes, kCopyGrain, [&](std::size_t begin, std::size_t end) {
        std::memset(static_cast<unsigned char*>(at) + begin, 0, end - begin);
    });
}

}  // namespace tensorhash::runtime
