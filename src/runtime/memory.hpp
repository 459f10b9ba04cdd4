// Memory for tables, results and scratch: 64-byte aligned, with huge pages where they help. Freed
// blocks are kept for reuse.
#pragma once

#include <cstddef>
#include <memory>

namespace tensorhash::runtime {

inline constexpr std::size_t kAlignment = 64;

enum class Fill : unsigned char {
    None,       // uninitialised
    Committed,  // uninitialised, but fresh pages are committed now, not on first touch
    Zero,       // zeros, committed
};

/// Rounds sizes above one huge page up to whole huge pages, as growth does: small steps split none.
std::size_t whole_huge_pages(std::size_t bytes);

/// Owns one block. A block of 0 bytes also has an aligned address, never null.
class Block {
public:
    Block() = default;
    /// Throws std::bad_alloc. Does not fill the first `kept` bytes: the caller will write them.
    explicit Block(std::size_t bytes, Fill fill = Fill::None, std::size_t kept = 0);
    Block(Block&& other) noexcept;
    Block& operator=(Block&& other) noexcept;
    Block(Block const&) = delete;
    Block& operator=(Block const&) = delete;
    ~Block();

    unsigned char* data() noexcept { return data_; }
    unsigned char const* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

    /// Enlarges the block and keeps its content: its pages move to another address, nothing is
    /// copied. New pages are committed and, with Fill::Zero, zeroed; what the block held beyond its
    /// content stays. Returns false and changes nothing if the caller should copy instead. Throws
    /// std::bad_alloc.
    bool grow(std::size_t bytes, Fill fill = Fill::Zero);
    /// Undoes grow(): `bytes` is what bytes() was before.
    void shrink(std::size_t bytes) noexcept;
    /// Gives back the pages of a mapped block beyond the first `bytes` bytes. The address stays.
    void trim(std::size_t bytes) noexcept;
    /// Can trim() give back all bytes beyond these, up to the end of their page?
    bool can_trim(std::size_t bytes) const noexcept;

    /// The memory without its owner, for code that cannot hold a Block. adopt() makes it a Block
    /// again.
    struct Raw {
        unsigned char* data;
        std::size_t bytes;
    };
    static Block adopt(Raw raw) noexcept;
    Raw release() noexcept;

private:
    unsigned char* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool seamed_ = false;  // mapped by more than one call: older systems cannot move such a range
};

/// Shrinks a grown block back to its old size, unless release() is called first.
struct Shrink {
    std::size_t before = 0;
    void operator()(Block* block) const noexcept { block->shrink(before); }
};
using Extension = std::unique_ptr<Block, Shrink>;

/// A block that tensors and tables can share.
std::shared_ptr<Block> make_shared_block(std::size_t bytes, Fill fill, std::size_t kept = 0);

/// Copy and clear on all threads; large memory bypasses the cache.
void copy_bytes(void* to, void const* from, std::size_t bytes);
void zero_bytes(void* at, std::size_t bytes);

}  // namespace tensorhash::runtime
