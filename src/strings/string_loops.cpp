// Looks up a batch of strings. This file is compiled once per instruction-set level, under the rule
// of cpu/engine.cpp: only plain types of the standard library.
#include "strings/string_loops.hpp"

#include "cpu/level_name.hpp"

namespace tensorhash::strings {
inline namespace TH_STEP_NAMESPACE {
namespace {

/// A head is read without a branch if the block goes on behind it.
TH_STEP Query query_of(BatchStrings const& batch, std::size_t i, step::HashSecret const& secret) {
    std::string_view const string = batch.strings[i];
    bool const readable =
        reinterpret_cast<std::uintptr_t>(string.data()) - batch.block < batch.readable;
    Head const head = readable ? head_of_readable(string.data(), string.size()) : head_of(string);
    return {string, head, hash_of(string, head, secret)};
}

void find_batch(StringTableView const& table, step::HashSecret const& secret,
                BatchStrings const& batch, Query* queries, std::uint32_t* numbers) {
    for (std::size_t i = 0; i < batch.count; ++i) {
        queries[i] = query_of(batch, i, secret);
        prefetch_bucket(table, queries[i]);
    }
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < batch.count + kAhead; ++i) {
        if (i < batch.count) numbers[i] = prefetch_entry(table, queries[i]);
        if (i < kAhead) continue;
        std::uint32_t const guess = numbers[i - kAhead];
        Query const& query = queries[i - kAhead];
        if (guess >= table.size || !holds(table, guess, query)) [[unlikely]]
            numbers[i - kAhead] = find(table, query);
    }
}

StringLoops const kTable{find_batch};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; string_dispatch.cpp declares one such function per level.
StringLoops const& TH_LEVEL_NAME(string_loops_)();
StringLoops const& TH_LEVEL_NAME(string_loops_)() { return kTable; }

}  // namespace tensorhash::strings
