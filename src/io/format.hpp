// The native file (.thash), described in docs/file-format.md: versioned, checksummed, exact.
#pragma once

#include <cstddef>
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

/// Throws FormatError that says what is wrong; whatever the bytes, never a crash and never a wrong table.
Restored read_table(unsigned char const* bytes, std::size_t count);

}  // namespace tensorhash::io
