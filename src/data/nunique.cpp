// Distinct values per group: a set of (group, value) pairs.
#include "data/nunique.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "backend/loader.hpp"
#include "cpu/partition.hpp"
#include "data/folds.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::data {
namespace {

constexpr Dtype kWord = Dtype::UInt64;
constexpr std::int64_t kWords = 2;  // group, value

Tensor empty_pairs(std::size_t count) {
    return Tensor::empty({static_cast<std::int64_t>(count), kWords}, kWord);
}

backend::KeyRows rows_of(Tensor const& pairs) {
    return {static_cast<backend::Bytes>(pairs.data()), static_cast<std::size_t>(pairs.shape()[0]),
            backend::KeySource::Private};
}

std::unique_ptr<backend::TableBackend> make_set() {
    Element const pair{kWord, {kWords}};
    std::vector<Element> const no_values;
    return backend::backend_for(Device{}, "device").make_table({pair, no_values}, Device{});
}

}  // namespace

PreparedPairs::PreparedPairs(backend::TableBackend& table, Tensor pairs)
    : table_(&table), pairs_(std::move(pairs)),
      out_(map::make_located(static_cast<std::size_t>(pairs_.shape()[0]))),
      prepared_(table.prepare(backend::Insert{rows_of(pairs_), {}, map::answers(out_)})) {}

PreparedPairs::~PreparedPairs() {
    if (prepared_) table_->cancel(std::move(prepared_));
}

void PreparedPairs::commit() noexcept { table_->finish(std::move(prepared_)); }

DistinctValues::DistinctValues() : table_(make_set()) {}

PreparedPairs DistinctValues::prepare(Column const& column, std::uint32_t const* groups,
                                      std::size_t rows) {
    Tensor pairs = empty_pairs(rows);
    auto* const out = static_cast<std::uint64_t*>(pairs.data());
    bool const is_float = domain_of(column.dtype) == Domain::Double;
    runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        std::array<std::uint64_t, cpu::kReadRows> room;
        for (std::size_t row = begin; row < end; row += cpu::kReadRows) {
            std::size_t const count = std::min(cpu::kReadRows, end - row);
            std::uint64_t const* const values = widen(column, row, count, room.data());
            for (std::size_t i = 0; i < count; ++i) {
                out[2 * (row + i)] = groups[row + i];
                out[2 * (row + i) + 1] = is_float ? step::canonical_double(values[i]) : values[i];
            }
        }
    });
    return {*table_, std::move(pairs)};
}

PreparedPairs DistinctValues::prepare(DistinctValues const& other, std::uint32_t const* groups) {
    Tensor pairs = other.pairs();
    auto* const words = static_cast<std::uint64_t*>(pairs.data());
    for (std::int64_t i = 0; i < pairs.shape()[0]; ++i) words[2 * i] = groups[words[2 * i]];
    return {*table_, std::move(pairs)};
}

void DistinctValues::count(std::size_t groups, std::size_t width, std::int64_t* out) const {
    for (std::size_t group = 0; group < groups; ++group) out[group * width] = 0;
    Tensor const all = pairs();
    auto const* const words = static_cast<std::uint64_t const*>(all.data());
    for (std::int64_t i = 0; i < all.shape()[0]; ++i) ++out[words[2 * i] * width];
}

Tensor DistinctValues::pairs() const {
    Tensor out = empty_pairs(table_->sizes().entries);
    table_->items(out.data(), {});
    return out;
}

}  // namespace tensorhash::data
