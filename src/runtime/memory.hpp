// Memory for tables, results and scratch: 64-byte aligned, huge pages where they pay, freed blocks kept warm.
#pragma once

#include <cstddef>
#include <memory>

namespace tensorhash::runtime {

inline constexpr std::size_t kAlignment = 64;

enum class Fill : unsigned char {
    None,       // whatever was there
    Committed,  // the same, but fresh pages are committed now rather than on first touch
    Zero,       // zeros, committed
};

/// Owns one block. Empty blocks have an aligned address too, so that nobody meets a null pointer.
class Block {
public:
    Block() = default;
    /// Throws std::bad_alloc. The first `kept` bytes are not filled: the caller will write them.
    explicit Block(std::size_t bytes, Fill fill = Fill::None, std::size_t kept = 0);
    Block(Block&& other) noexcept;
    Block& operator=(Block&& other) noexcept;
    Block(Block const&) = delete;
    Block& operator=(Block const&) = delete;
    ~Block();

    unsigned char* data() noexcept { return data_; }
    unsigned char const* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

    /// Makes the block larger and keeps what is in it: its pages move to another address, nothing is copied. What is new
    /// is zeros, committed. False: the block is as it was, and only a copy helps. Throws std::bad_alloc.
    bool grow(std::size_t bytes);
    /// Undoes grow(): `bytes` is what bytes() was before.
    void shrink(std::size_t bytes) noexcept;

    /// The memory without its owner, for those who cannot hold a Block; adopt() makes it a Block again.
    struct Raw {
        unsigned char* data;
        std::size_t bytes;
    };
    static Block adopt(Raw raw) noexcept;
    Raw release() noexcept;

private:
    unsigned char* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool seamed_ = false;  // mapped by more than one call: not every kernel can move such a range
};

/// Takes a grown block back to what it was, unless release() is called first.
struct Shrink {
    std::size_t before = 0;
    void operator()(Block* block) const noexcept { block->shrink(before); }
};
using Extension = std::unique_ptr<Block, Shrink>;

/// A block that tensors and tables can hold together.
std::shared_ptr<Block> make_shared_block(std::size_t bytes, Fill fill, std::size_t kept = 0);

/// Copies and clears in parallel, large memory past the cache.
void copy_bytes(void* to, void const* from, std::size_t bytes);
void zero_bytes(void* at, std::size_t bytes);

}  // namespace tensorhash::runtime
