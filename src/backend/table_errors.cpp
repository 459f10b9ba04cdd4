// The texts of table_errors.hpp.
#include "backend/table_errors.hpp"

#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::backend {
namespace {

std::string at_most() {
    return ": a table holds at most " + std::to_string(kMaxEntries) + " entries";
}

}  // namespace

void fail_too_many(std::uint64_t entries) {
    throw ValueError("keys" + at_most() + ", this batch needs at least " + std::to_string(entries));
}

void fail_capacity(std::uint64_t capacity) {
    throw ValueError("capacity" + at_most() + ", got " + std::to_string(capacity));
}

void fail_sizes(std::uint32_t top, std::size_t free, std::uint64_t capacity) {
    throw CorruptTable("table: " + std::to_string(top) + " indices, " + std::to_string(free) +
                       " of them free, do not fit a capacity of " + std::to_string(capacity));
}

void fail_free_index(std::uint32_t buf_index) {
    throw CorruptTable("table: free index " + std::to_string(buf_index) +
                       " is out of range or listed twice");
}

void fail_bool_key(std::uint32_t buf_index) {
    throw CorruptTable("table: the bool key at index " + std::to_string(buf_index) +
                       " has a byte other than 0 and 1");
}

void fail_lookup(std::uint32_t buf_index, std::uint32_t found) {
    throw CorruptTable("table: the key at index " + std::to_string(buf_index) + " is found at " +
                       std::to_string(static_cast<std::int32_t>(found)));
}

}  // namespace tensorhash::backend
