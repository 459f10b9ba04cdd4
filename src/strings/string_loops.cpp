// Looks up a batch of strings. This file is compiled once per instruction-set level, under the rule
// of cpu/engine.cpp: only plain types of the standard library.
#include "strings/string_loops.hpp"

#include "cpu/level_name.hpp"

namespace tensorhash::strings {
inline namespace TH_STEP_NAMESPACE {
namespace {

/// Stands for all entries of an empty table: no string is as long.
constexpr Entry kNoEntry{{}, 0, 0, ~std::uint64_t{0}};

template <bool IsPreceded>
void hash_batch(StringTableView const& table, StringSecret const& secret,
                StringBatch const& batch) {
    for (std::size_t i = 0; i < batch.count; ++i) {
        std::string_view const string = batch.strings[i];
        Head& head = batch.heads[i];
        head = IsPreceded ? head_of_preceded(string.data(), string.size()) : head_of(string);
        std::uint64_t const hash = hash_of(string, head, secret);
        batch.hashes[i] = hash;
        prefetch_bucket(table, hash);
    }
}

void find_batch(StringTableView const& in, StringSecret const& secret, StringBatch const& batch) {
    StringTableView table = in;
    if (table.size == 0) table.entries = &kNoEntry;
    batch.is_preceded ? hash_batch<true>(table, secret, batch)
                      : hash_batch<false>(table, secret, batch);
    constexpr std::size_t kAhead = 32;
    for (std::size_t i = 0; i < batch.count + kAhead; ++i) {
        if (i < batch.count) batch.numbers[i] = prefetch_entry(table, batch.hashes[i]);
        if (i < kAhead) continue;
        std::size_t const row = i - kAhead;
        if (!holds(table, batch.numbers[row], batch.strings[row], batch.heads[row])) [[unlikely]]
            batch.numbers[row] = find(table, batch.query(row));
    }
}

StringLoops const kTable{find_batch};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; string_dispatch.cpp declares one such function per level.
StringLoops const& TH_LEVEL_NAME(string_loops_)();
StringLoops const& TH_LEVEL_NAME(string_loops_)() { return kTable; }

}  // namespace tensorhash::strings
