// The native file (.thash), described in docs/file-format.md: versioned, checksummed, exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/file.hpp"
#include "table/table.hpp"

namespace tensorhash::io {

struct Restored {
    Element key;
    std::vector<Element> values;
    table::Table table;
};

void write_table(Sink& sink, Element const& key, std::vector<Element> const& values,
                 table::Table const& table);

/// How many bytes write_table() writes.
std::size_t table_bytes(Element const& key, std::vector<Element> const& values,
                        table::Table const& table);

/// A native file in memory, checked as far as that takes no memory: start, version, checksum,
/// sizes.
struct Image {
    Element key;
    std::vector<Element> values;
    std::uint64_t capacity = 0;
    std::uint64_t top = 0;
    std::uint64_t free_count = 0;
    unsigned char const* body = nullptr;  // free stack, keys, columns

    /// What the table takes with this many rows.
    std::uint64_t memory(std::uint64_t rows) const {
        std::uint64_t const bytes = table::Table::memory_for(key, values, rows);
        std::uint64_t const stack = free_count * sizeof(std::uint32_t);
        return bytes + stack < bytes ? UINT64_MAX : bytes + stack;
    }
};

/// Throws FormatError that says what is wrong; whatever the bytes, never a crash.
Image read_image(unsigned char const* bytes, std::size_t count);

/// What these tables take with all their capacity.
std::uint64_t memory_of(std::span<Image const> images);

/// Whether tables get the rows that their files say; false: only as many as they use, because more
/// would take more than `limit` bytes. Throws FormatError if that is too much too.
bool fits_with_capacity(std::span<Image const> images, std::uint64_t limit);

/// Throws FormatError that names `max_bytes` and what it would have to be.
void require_within(std::uint64_t bytes, std::uint64_t limit);

/// The table of an image, with so many rows, at least its `top`. Throws FormatError; never a wrong
/// table.
Restored build_table(Image&& image, std::uint64_t rows);

}  // namespace tensorhash::io
