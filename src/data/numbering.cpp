// Numbers rows by key. With few keys each thread numbers its own rows; the lists of the threads,
// joined in thread order, are in order of first occurrence.
#include "data/numbering.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/partition.hpp"
#include "cpu/word_numbers.hpp"
#include "map/arguments.hpp"
#include "runtime/parallel.hpp"
#include "table/table.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/threads.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::data {
namespace {

using cpu::kReadRows;
using runtime::Block;

std::uint32_t* numbers_in(Block& block) { return reinterpret_cast<std::uint32_t*>(block.data()); }

/// The rows of one thread, their local numbers and the table that gave them.
struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    cpu::WordNumbers table;
};

/// False if the piece has more than `most` distinct keys.
bool number_piece(Piece& piece, KeyRows const& keys, step::HashSecret const& secret,
                  std::size_t most, std::uint32_t* numbers, std::atomic<bool>& gave_up) {
    cpu::NarrowKeys const narrow = keys.narrow();
    std::array<std::uint64_t, kReadRows> words;
    piece.table.reset(std::min<std::size_t>(piece.end - piece.begin, 1024));
    for (std::size_t row = piece.begin; row < piece.end; row += kReadRows) {
        // A hint: the result is dropped in any case.
        if (gave_up.load(std::memory_order_relaxed)) return false;
        std::size_t const count = std::min(kReadRows, piece.end - row);
        cpu::group_loops().mix(narrow, secret, row, count, words.data());
        if (piece.table.number(words.data(), nullptr, static_cast<std::uint32_t>(row), count,
                               numbers + row, most) < count) {
            return false;
        }
    }
    return true;
}

/// Numbers the words of the later pieces in the first one's table.
std::vector<OwnNumbers> join_pieces(std::vector<Piece>& pieces) {
    cpu::WordNumbers& all = pieces[0].table;
    std::vector<OwnNumbers> own;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        cpu::WordNumbers const& table = pieces[i].table;
        own.push_back({pieces[i].begin, pieces[i].end, {}});
        own.back().map.resize(table.count());
        all.number(table.words().data(), table.rows().data(), 0, table.count(),
                   own.back().map.data());
    }
    return own;
}

}  // namespace

void Numbering::translate(OwnNumbers const& one) {
    std::uint32_t* const rows = numbers_in(numbers);
    std::uint32_t const* const map = one.map.data();
    for (std::size_t row = one.begin; row < one.end; ++row) rows[row] = map[rows[row]];
}

void Numbering::translate() {
    runtime::run_tasks(own.size(), [&](std::size_t i) { translate(own[i]); });
    own.clear();
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

std::optional<Numbering> number_few(KeyRows const& keys, step::HashSecret const& secret,
                                    std::size_t most) {
    Numbering out;
    out.numbers = Block(keys.rows * sizeof(std::uint32_t));
    std::uint32_t* const numbers = numbers_in(out.numbers);
    auto const threads = static_cast<std::size_t>(num_threads());
    std::size_t const count = std::clamp<std::size_t>(keys.rows / kSmallBatch, 1, threads);
    std::vector<Piece> pieces(count);
    std::atomic<bool> gave_up{false};
    runtime::run_tasks(count, [&](std::size_t i) {
        pieces[i].begin = keys.rows * i / count;
        pieces[i].end = keys.rows * (i + 1) / count;
        if (!number_piece(pieces[i], keys, secret, most, numbers, gave_up)) {
            gave_up.store(true, std::memory_order_relaxed);  // read after the tasks join
        }
    });
    if (gave_up.load(std::memory_order_relaxed)) return std::nullopt;
    out.own = join_pieces(pieces);
    std::span<std::uint32_t const> const rows = pieces[0].table.rows();
    out.first_rows = Tensor::empty(with_rows(rows.size(), {}), Dtype::Int64);
    std::copy(rows.begin(), rows.end(), out.first_rows.as_mutable<std::int64_t>().begin());
    return out;
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
    if (keys.rows < 2 * kSmallBatch) return *number_few(keys, secret, keys.rows);
    if (estimate_groups(keys, secret) <= static_cast<double>(kFewGroups)) {
        if (std::optional<Numbering> few = number_few(keys, secret, kMostFewGroups)) {
            return *std::move(few);
        }
    }
    return number_all(keys);
}

}  // namespace tensorhash::data
