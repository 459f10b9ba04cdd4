// The native file (.thash), described in docs/file-format.md: versioned, checksummed, exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/loader.hpp"
#include "backend/table_backend.hpp"
#include "io/file.hpp"

namespace tensorhash::io {

void write_table(Sink& sink, Element const& key, std::vector<Element> const& values,
                 backend::TableImage const& table);

/// The number of bytes that write_table() writes.
std::size_t table_bytes(Element const& key, std::vector<Element> const& values,
                        backend::TableImage const& table);

/// A native file in memory. Magic, version, checksum and sizes are checked; the rows are not.
struct Image {
    Element key;
    std::vector<Element> values;
    std::uint64_t capacity = 0;
    std::uint64_t top = 0;
    std::uint64_t free_count = 0;
    unsigned char const* body = nullptr;  // free stack, keys, columns

    /// The bytes of host memory that the table takes with this many rows.
    std::uint64_t memory(std::uint64_t rows) const {
        std::uint64_t const bytes =
            backend::backend_for(Device{}, "device").memory_for({key, values, rows});
        std::uint64_t const stack = free_count * sizeof(std::uint32_t);
        return bytes + stack < bytes ? UINT64_MAX : bytes + stack;
    }
};

/// Throws FormatError that says what is wrong. No input can crash it.
Image read_image(unsigned char const* bytes, std::size_t count);

/// The bytes of memory that these tables take with all their capacity.
std::uint64_t memory_of(std::span<Image const> images);

/// Whether the tables fit into `limit` bytes with all their capacity. If not, they get only the
/// rows in use. Throws FormatError if even those do not fit.
bool fits_with_capacity(std::span<Image const> images, std::uint64_t limit);

/// If `bytes` is above `limit`, throws FormatError that names `max_bytes` and the value it needs.
void require_within(std::uint64_t bytes, std::uint64_t limit);

/// Fills a new table of at least `image.top` rows, a backend::TableBackend or a table::Table.
/// Throws FormatError if the content is not a correct table.
template <class AnyTable>
void fill_table(AnyTable& table, Image const& image);

/// A table on the CPU with the content of a file and `rows` rows.
std::unique_ptr<backend::TableBackend> build_table(Image const& image, std::uint64_t rows,
                                                   Device device);

}  // namespace tensorhash::io
