// The file of a bounded table: a short head before the .thash image of the table.
// docs/file-format.md describes it.
#pragma once

#include "io/file.hpp"
#include "io/format.hpp"
#include "table/bounded_batch.hpp"

namespace tensorhash::io {

struct BoundedHead {
    Eviction eviction;
    std::uint64_t clock;
    std::uint64_t uses;
};

inline constexpr std::size_t kHeadBytes = 40;

void write_head(Sink& sink, BoundedHead const& head);

/// Reads the head and advances `bytes` and `count` past it. Throws FormatError.
BoundedHead read_head(unsigned char const*& bytes, std::size_t& count);

void write_bounded(Sink& sink, Element const& key, std::vector<Element> const& elements,
                   table::BoundedState const& state);

/// The file of a bounded table, checked like Image.
struct BoundedImage {
    BoundedHead head;
    Image table;
};
BoundedImage read_bounded(unsigned char const* bytes, std::size_t count);

/// A table built from a file, and its ledger. `values` are the caller's columns only. Building
/// throws FormatError.
struct RestoredBounded {
    Element key;
    std::vector<Element> values;
    table::Table table;
    table::Ledger ledger;
};
RestoredBounded build_bounded(BoundedImage&& image);

}  // namespace tensorhash::io
