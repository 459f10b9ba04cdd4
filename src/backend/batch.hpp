// What a batch looks like to a back end: checked, contiguous rows on the table's device, and memory
// for the answers. Plain pointers, so that a call costs no copy and no allocation.
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
    Caller,   // in memory that another thread or process may write to at any time
    Private,  // in memory that does not change until the call is over
};

struct KeyRows {
    Bytes data = nullptr;
    std::size_t rows = 0;
    KeySource source = KeySource::Caller;
};

/// One pointer per value column. With an `order`, row i of the keys has row order[i] of the values.
struct ValueRows {
    std::span<Bytes const> columns;
    std::uint32_t const* order = nullptr;
};

/// Where a call writes its answers.
struct Answers {
    std::uint32_t* indices;  // [rows] buffer indices; 0xffffffff reads as -1
    unsigned char* mask;     // [rows]
};

/// Rows for keys that are not there: `step` bytes from one key's row to the next, 0 if all keys
/// share one. Null: zeros.
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

// The changes of a table, one struct per verb. HashMap has the verbs' contracts.

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
struct Accumulate {
    KeyRows keys;
    ValueRows values;
    std::span<Reduce const> reduce;  // one for all columns or one per column
    Answers out;
};

/// How update() gets to the entries of its keys.
enum class Lookup : unsigned char {
    Find,    // looks the keys up; absent ones are skipped
    Insert,  // adds absent keys; the mask says which rows found their key
    Done,    // the answers are there already, as find() gave them
};
struct Update {
    KeyRows keys;
    Element const* gradient;  // what a row of the gradients is
    Bytes gradients;
    std::variant<Optimizer const*, RowStep const*> step;
    Duplicates duplicates;
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
struct Compact {
    std::int32_t* old_to_new;  // [capacity]
};

using Change =
    std::variant<Insert, Activate, InsertOrAssign, Accumulate, Update, Erase, Reserve, Compact>;

}  // namespace tensorhash::backend
