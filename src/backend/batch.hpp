// A batch as a back end sees it: checked, contiguous rows on the table's device, and memory for the
// results. Plain pointers, so that a call costs no copy and no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tensorhash/dtype.hpp"
#include "tensorhash/optimizer.hpp"
#include "tensorhash/reduce.hpp"

namespace tensorhash::backend {

using Bytes = unsigned char const*;

/// Where the keys of a batch lie.
enum class KeySource : unsigned char {
    Caller,   // memory that another thread or process may write to at any time
    Private,  // memory that does not change until the call is over
};

struct KeyRows {
    Bytes data = nullptr;
    std::size_t rows = 0;
    KeySource source = KeySource::Caller;
};

/// One pointer per value column. With `order`, row i of the keys has row order[i] of the values.
struct ValueRows {
    std::span<Bytes const> columns;
    std::uint32_t const* order = nullptr;
};

/// Where a call writes its results.
struct Answers {
    std::uint32_t* indices;  // [rows] buffer indices; 0xffffffff reads as -1
    unsigned char* mask;     // [rows]
};

/// Rows for absent keys: `step` bytes from one key's row to the next, 0 if all keys share one row.
/// Null means zeros.
struct DefaultRows {
    Bytes data = nullptr;
    std::size_t step = 0;
};

/// Rows of a column to copy: row i of the result, or row places[i], is the row at indices[i].
struct Gather {
    std::uint32_t const* indices;  // [rows]; -1 gives a row of `missing`
    std::size_t rows;
    DefaultRows missing = {};
    std::uint32_t const* places = nullptr;  // distinct
};

// The changes of a table, one struct per operation. HashMap documents the operations.

struct Insert {
    KeyRows keys;
    ValueRows values;
    Answers out;
};
struct Activate {
    KeyRows keys;
    Answers out;
};
struct InsertOrAssign {
    KeyRows keys;
    ValueRows values;
    Answers out;
};
/// Overwrites the values of present keys; of equal keys the last row wins. The results are those of
/// find().
struct Assign {
    KeyRows keys;
    ValueRows values;
    Answers out;
};
struct Accumulate {
    KeyRows keys;
    ValueRows values;
    std::span<Reduce const> reduce;  // one for all columns or one per column
    Answers out;
};

/// How update() finds the entries of its keys.
enum class Lookup : unsigned char {
    Find,    // looks the keys up and skips absent ones
    Insert,  // adds absent keys; the mask says which rows found their key
    Done,    // `out` already has the results of find()
};
struct Update {
    KeyRows keys;
    Element const* gradient;  // dtype and shape of one row of the gradients
    Bytes gradients;
    std::variant<Optimizer const*, RowStep const*> step;
    DuplicateKeys duplicates;
    Lookup lookup;
    DefaultRows initial;  // weights of the keys that Lookup::Insert adds
    Answers out;
};

struct Erase {
    KeyRows keys;
    unsigned char* mask;  // [rows]
};
struct Reserve {
    std::uint64_t capacity;
};
/// The capacity becomes the last live index plus one; free indices beyond it are forgotten.
struct Shrink {};
struct Compact {
    std::int32_t* old_to_new;  // [capacity]
};

using Change = std::variant<Insert, Activate, InsertOrAssign, Assign, Accumulate, Update, Erase,
                            Reserve, Compact, Shrink>;

}  // namespace tensorhash::backend
