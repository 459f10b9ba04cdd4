// Numbers rows by key.
#include "data/numbering.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "cpu/partition.hpp"
#include "cpu/word_numbers.hpp"
#include "data/few_groups.hpp"
#include "map/arguments.hpp"
#include "runtime/parallel.hpp"
#include "table/table.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::data {
namespace {

using cpu::kReadRows;
using runtime::Block;

std::uint32_t* numbers_in(Block& block) { return reinterpret_cast<std::uint32_t*>(block.data()); }

/// A small batch, by one thread.
Numbering number_small(KeyRows const& keys, step::HashSecret const& secret) {
    Numbering out{Block(keys.rows * sizeof(std::uint32_t)), {}};
    cpu::WordNumbers table;
    table.reset(std::min<std::size_t>(keys.rows, 1024));
    std::array<std::uint64_t, kReadRows> words;
    for (std::size_t row = 0; row < keys.rows; row += kReadRows) {
        std::size_t const count = std::min(kReadRows, keys.rows - row);
        cpu::group_loops().mix(keys.narrow(), secret, row, count, words.data());
        table.number(words.data(), nullptr, static_cast<std::uint32_t>(row), count,
                     numbers_in(out.numbers) + row);
    }
    out.first_rows = first_rows_of(table);
    return out;
}

}  // namespace

Tensor first_rows_of(cpu::WordNumbers const& table) {
    std::span<std::uint32_t const> const rows = table.rows();
    Tensor out = Tensor::empty(with_rows(rows.size(), {}), Dtype::Int64);
    std::copy(rows.begin(), rows.end(), out.as_mutable<std::int64_t>().begin());
    return out;
}

cpu::NarrowKeys KeyRows::narrow() const {
    step::KeyFormat const format = table::format_of(element);
    return {static_cast<unsigned char const*>(tensor.data()), format.bytes, format.float_bytes};
}

KeyRows check_keys(Tensor const& keys, Element const& element, std::string_view argument) {
    map::CheckedBatch batch = map::check_batch(keys, element, argument);
    return {std::move(batch.tensor), element, batch.rows};
}

KeyRows check_keys(Tensor const& keys, std::string_view argument) {
    Element const element = map::element_of(keys, argument);
    if (!is_key_dtype(element.dtype)) {
        throw TypeError(std::string(argument) +
                        ": expected bool, an integer, float32 or float64, got " +
                        std::string(name(element.dtype)));
    }
    if (num_elements(element.shape) < 1) {
        throw ValueError(std::string(argument) +
                         ": expected at least one number per row, got shape " +
                         to_string(keys.shape()));
    }
    map::check_key_element(element);
    return check_keys(keys, element, argument);
}

Tensor gather_rows(KeyRows const& keys, Tensor const& rows) {
    auto const count = static_cast<std::size_t>(rows.size());
    Tensor out = Tensor::empty(with_rows(count, keys.element.shape), keys.element.dtype);
    auto const* const from = static_cast<unsigned char const*>(keys.tensor.data());
    auto* const to = static_cast<unsigned char*>(out.data());
    std::span<std::int64_t const> const wanted = rows.as<std::int64_t>();
    auto const copy = [&](auto bytes) {
        runtime::for_ranges(count, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                std::memcpy(to + i * bytes, from + static_cast<std::size_t>(wanted[i]) * bytes,
                            bytes);
            }
        });
    };
    if (std::size_t const bytes = keys.element.bytes(); bytes == 8) {
        copy(std::integral_constant<std::size_t, 8>{});
    } else {
        copy(bytes);
    }
    return out;
}

double estimate_groups(KeyRows const& keys, step::HashSecret const& secret) {
    constexpr std::size_t kSample = 4096;
    std::size_t const count = std::min(kSample, keys.rows);
    std::array<std::uint64_t, kSample> words;
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < count; ++i) {
        place = step::mix(place + i);
        std::size_t const row = static_cast<std::size_t>(place >> 32) * keys.rows >> 32;
        cpu::group_loops().mix(keys.narrow(), secret, row, 1, &words[i]);
    }
    std::sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    double distinct = 0;
    double once = 0;
    double twice = 0;
    for (std::size_t i = 0, next = 0; i < count; i = next) {
        while (next < count && words[next] == words[i]) ++next;
        distinct += 1;
        once += next - i == 1 ? 1 : 0;
        twice += next - i == 2 ? 1 : 0;
    }
    // Chao's estimate of the keys that the sample missed.
    double const missed = twice > 0 ? once * once / (2 * twice) : once * once / 2;
    return std::min(distinct + missed, static_cast<double>(keys.rows));
}

Numbering number_all(KeyRows const& keys) {
    Unique const found = unique(keys.tensor, {.index = true, .inverse = true, .counts = false});
    Numbering out;
    out.numbers = Block(keys.rows * sizeof(std::uint32_t));
    out.first_rows = found.index;
    std::uint32_t* const numbers = numbers_in(out.numbers);
    std::span<std::int64_t const> const inverse = found.inverse.as<std::int64_t>();
    runtime::for_ranges(keys.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            numbers[row] = static_cast<std::uint32_t>(inverse[row]);
        }
    });
    return out;
}

Numbering number_rows(KeyRows const& keys, step::HashSecret const& secret) {
    if (!keys.is_narrow()) return number_all(keys);
    if (keys.rows < 2 * kSmallBatch) return number_small(keys, secret);
    double const groups = estimate_groups(keys, secret);
    if (groups <= static_cast<double>(kFewGroups)) {
        if (auto few = number_few(keys, secret, groups, kMostFewGroups)) return *std::move(few);
    }
    return number_all(keys);
}

}  // namespace tensorhash::data
