// Memory for tables, results and scratch: 64-byte aligned, huge pages where they pay, freed blocks kept warm.
#pragma once

#include <cstddef>
#include <memory>

namespace tensorhash::runtime {

inline constexpr std::size_t kAlignment = 64;

enum class Fill : unsigned char {
    None,  // whatever was there
    Zero,  // zeros, and every page committed now rather than on first touch
};

/// Owns one block. Empty blocks have an aligned address too, so that nobody meets a null pointer.
class Block {
public:
    Block() = default;
    /// Throws std::bad_alloc.
    explicit Block(std::size_t bytes, Fill fill = Fill::None);
    Block(Block&& other) noexcept;
    Block& operator=(Block&& other) noexcept;
    Block(Block const&) = delete;
    Block& operator=(Block const&) = delete;
    ~Block();

    unsigned char* data() noexcept { return data_; }
    unsigned char const* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    unsigned char* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// A block that tensors and tables can hold together.
std::shared_ptr<Block> make_shared_block(std::size_t bytes, Fill fill);

/// Copies and clears in parallel.
void copy_bytes(void* to, void const* from, std::size_t bytes);
void zero_bytes(void* at, std::size_t bytes);

}  // namespace tensorhash::runtime
