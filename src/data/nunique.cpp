// Distinct values per group: a set of (group, value) pairs.
#include "data/nunique.hpp"

#include <algorithm>

#include "cpu/partition.hpp"
#include "data/folds.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::data {
namespace {

constexpr Dtype kWord = Dtype::UInt64;
constexpr std::int64_t kWords = 2;  // group, value

}  // namespace

DistinctValues::DistinctValues() : pairs_(Capacity{0}, Element{kWord, {kWords}}) {}

void DistinctValues::add(Column const& column, std::uint32_t const* groups, std::size_t rows) {
    Tensor pairs = Tensor::empty({static_cast<std::int64_t>(rows), kWords}, kWord);
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
    pairs_.insert(pairs);
}

void DistinctValues::merge(DistinctValues const& other, std::uint32_t const* groups) {
    Tensor pairs = other.pairs_.keys();
    auto* const words = static_cast<std::uint64_t*>(pairs.data());
    for (std::int64_t i = 0; i < pairs.shape()[0]; ++i) words[2 * i] = groups[words[2 * i]];
    pairs_.insert(pairs);
}

void DistinctValues::count(std::size_t groups, std::size_t width, std::int64_t* out) const {
    for (std::size_t group = 0; group < groups; ++group) out[group * width] = 0;
    Tensor const pairs = pairs_.keys();
    auto const* const words = static_cast<std::uint64_t const*>(pairs.data());
    for (std::int64_t i = 0; i < pairs.shape()[0]; ++i) ++out[words[2 * i] * width];
}

}  // namespace tensorhash::data
