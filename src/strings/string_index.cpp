// StringIndex: batches on all threads. Each thread looks its rows up in the table and numbers the
// strings that are new to it in a table of its own. The tables of the threads, joined in thread
// order, give the new strings in row order.
#include "tensorhash/strings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "runtime/lock.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "runtime/seed.hpp"
#include "strings/offset_source.hpp"
#include "strings/string_index_impl.hpp"
#include "strings/string_loops.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash {
namespace {

using strings::kNoString;
using strings::StringBatch;
using strings::StringTable;

constexpr std::size_t kRead = StringSource::kMostRead;
/// Below this many rows a second thread costs more than it gains.
constexpr std::size_t kMinPiece = 8192;

/// Calls body(row, batch, i) for rows [begin, end): row is number i of the batch. The body may
/// change the table.
template <class Body>
void for_batches(StringSource const& source, StringTable const& table, std::size_t begin,
                 std::size_t end, Body&& body) {
    strings::StringLoops const& loops = strings::string_loops();
    std::array<std::string_view, kRead> views;
    std::array<strings::Head, kRead> heads;
    std::array<std::uint64_t, kRead> hashes;
    std::array<std::uint32_t, kRead> numbers;
    std::string room;
    for (std::size_t row = begin; row < end; row += kRead) {
        std::size_t const count = std::min(kRead, end - row);
        room.clear();
        source.read(row, count, views.data(), room);
        bool const is_preceded = source.is_preceded();
        for (std::size_t i = 0; !is_preceded && i < count; ++i) step::prefetch(views[i].data());
        StringBatch const batch{views.data(), count,         is_preceded,
                                heads.data(), hashes.data(), numbers.data()};
        loops.find(table.view(), table.secret(), batch);
        for (std::size_t i = 0; i < count; ++i) body(row + i, batch, i);
    }
}

/// Consecutive rows, and the strings among them that the table did not have.
struct Piece {
    std::size_t begin;
    std::size_t end;
    StringTable added;
};

std::vector<Piece> cut_pieces(std::size_t rows, strings::StringSecret const& secret) {
    auto const threads = static_cast<std::size_t>(num_threads());
    std::size_t const count = std::clamp<std::size_t>(rows / kMinPiece, 1, threads);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < count; ++i) {
        pieces.push_back({rows * i / count, rows * (i + 1) / count, StringTable(secret)});
    }
    return pieces;
}

/// A string that the table does not have is ~number of its piece, until the pieces are joined.
void number_piece(Piece& piece, StringTable const& table, StringSource const& source,
                  std::int64_t* out) {
    for_batches(source, table, piece.begin, piece.end,
                [&](std::size_t row, StringBatch const& batch, std::size_t i) {
                    std::uint32_t const found = batch.numbers[i];
                    out[row] = found != kNoString
                                   ? std::int64_t{found}
                                   : ~std::int64_t{piece.added.insert(batch.query(i))};
                });
}

/// The same for an empty table. The numbers of the first piece stay as they are.
void number_first_pieces(Piece& piece, StringSource const& source, std::int64_t* out) {
    std::int64_t const inverted = piece.begin == 0 ? 0 : -1;
    for_batches(source, piece.added, piece.begin, piece.end,
                [&](std::size_t row, StringBatch const& batch, std::size_t i) {
                    std::uint32_t found = batch.numbers[i];
                    if (found == kNoString) [[unlikely]]
                        found = piece.added.insert(batch.query(i));
                    out[row] = std::int64_t{found} ^ inverted;
                });
}

/// The numbers of the strings of a piece in the table, which gets the new ones. It has room, so
/// that nothing can fail.
void join_piece(StringTable& table, StringTable const& added, std::vector<std::uint32_t>& numbers) {
    constexpr std::size_t kBucket = 32;
    constexpr std::size_t kEntry = 16;
    std::size_t const size = added.size();
    for (std::size_t i = 0; i < std::min(kBucket, size); ++i) table.prefetch_bucket(added.hash(i));
    for (std::size_t i = 0; i < std::min(kEntry, size); ++i) table.prefetch_entry(added.hash(i));
    for (std::size_t i = 0; i < size; ++i) {
        if (i + kBucket < size) table.prefetch_bucket(added.hash(i + kBucket));
        if (i + kEntry < size) table.prefetch_entry(added.hash(i + kEntry));
        numbers[i] = table.insert(added.query_of(i));
    }
}

Tensor new_numbers(std::size_t rows) { return Tensor::empty(with_rows(rows, {}), Dtype::Int64); }

std::int64_t* numbers_in(Tensor& tensor) { return static_cast<std::int64_t*>(tensor.data()); }

/// Makes room for the new strings of the pieces from `first` on. Changes no result.
void reserve(StringTable& table, std::vector<Piece> const& pieces, std::size_t first) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (std::size_t i = first; i < pieces.size(); ++i) {
        count += pieces[i].added.size();
        bytes += pieces[i].added.bytes();
    }
    table.reserve(count, bytes);
}

/// Replaces ~number of a piece by the number in the table.
void number_rows(Piece const& piece, std::vector<std::uint32_t> const& numbers, std::int64_t* out) {
    std::int64_t* const rows = out + piece.begin;
    runtime::for_ranges(piece.end - piece.begin, kMinPiece,
                        [&](std::size_t begin, std::size_t end) {
                            for (std::size_t row = begin; row < end; ++row) {
                                if (rows[row] < 0)
                                    rows[row] = numbers[static_cast<std::size_t>(~rows[row])];
                            }
                        });
}

/// Gives the new strings of all pieces their numbers. Allocates first, then changes the table.
void join_pieces(StringTable& table, std::vector<Piece>& pieces, std::int64_t* out) {
    bool const is_first = table.size() == 0;
    std::size_t const first = is_first ? 1 : 0;
    std::vector<std::vector<std::uint32_t>> numbers(pieces.size());
    for (std::size_t i = first; i < pieces.size(); ++i) numbers[i].resize(pieces[i].added.size());
    reserve(is_first ? pieces[0].added : table, pieces, first);
    if (is_first) table = std::move(pieces[0].added);
    for (std::size_t i = first; i < pieces.size(); ++i) {
        join_piece(table, pieces[i].added, numbers[i]);
        if (!numbers[i].empty()) number_rows(pieces[i], numbers[i], out);
    }
}

StringRows copy_strings(StringTable const& table, std::int64_t const* numbers, std::size_t rows) {
    auto const string = [&](std::size_t row) {
        return table.string(numbers == nullptr ? row : static_cast<std::size_t>(numbers[row]));
    };
    StringRows out{new_numbers(rows + 1), {}};
    std::int64_t* const offsets = numbers_in(out.offsets);
    for (std::size_t row = 0; row < rows; ++row) {
        offsets[row] = static_cast<std::int64_t>(string(row).size());
    }
    offsets[rows] = 0;
    runtime::scan(std::span(offsets, rows + 1));
    out.bytes = Tensor::empty({offsets[rows]}, Dtype::UInt8);
    auto* const bytes = static_cast<char*>(out.bytes.data());
    runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            std::string_view const from = string(row);
            std::copy(from.begin(), from.end(), bytes + offsets[row]);
        }
    });
    return out;
}

}  // namespace

StringIndex::StringIndex(std::optional<std::uint64_t> seed)
    : impl_(std::make_unique<Impl>(strings::string_secret_of(seed.value_or(runtime::new_seed())))) {
}
StringIndex::StringIndex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StringIndex::StringIndex(StringIndex&&) noexcept = default;
StringIndex& StringIndex::operator=(StringIndex&&) noexcept = default;
StringIndex::~StringIndex() = default;

Tensor StringIndex::insert(StringSource const& strings) {
    Tensor out = new_numbers(strings.rows());
    std::int64_t* const numbers = numbers_in(out);
    std::unique_lock const guard(impl_->lock);
    std::vector<Piece> pieces = cut_pieces(strings.rows(), impl_->table.secret());
    runtime::run_tasks(pieces.size(), [&](std::size_t i) {
        if (impl_->table.size() == 0) {
            number_first_pieces(pieces[i], strings, numbers);
        } else {
            number_piece(pieces[i], impl_->table, strings, numbers);
        }
    });
    join_pieces(impl_->table, pieces, numbers);
    return out;
}

Tensor StringIndex::find(StringSource const& strings) const {
    Tensor out = new_numbers(strings.rows());
    std::int64_t* const numbers = numbers_in(out);
    std::shared_lock const guard(impl_->lock);
    StringTable const& table = impl_->table;
    runtime::for_ranges(strings.rows(), kMinPiece, [&](std::size_t begin, std::size_t end) {
        for_batches(strings, table, begin, end,
                    [&](std::size_t row, StringBatch const& batch, std::size_t i) {
                        std::uint32_t const found = batch.numbers[i];
                        numbers[row] = found == kNoString ? -1 : std::int64_t{found};
                    });
    });
    return out;
}

Tensor StringIndex::insert(StringRows const& rows) { return insert(strings::OffsetSource(rows)); }
Tensor StringIndex::find(StringRows const& rows) const { return find(strings::OffsetSource(rows)); }

StringRows StringIndex::decode(Tensor const& numbers) const {
    if (numbers.dtype() != Dtype::Int64 || numbers.rank() != 1) {
        throw TypeError("numbers: expected int64 (N,), got " + std::string(name(numbers.dtype())) +
                        " " + to_string(numbers.shape()));
    }
    Tensor const rows = numbers.contiguous();
    std::span<std::int64_t const> const wanted = rows.as<std::int64_t>();
    std::shared_lock const guard(impl_->lock);
    auto const size = static_cast<std::int64_t>(impl_->table.size());
    for (std::int64_t const number : wanted) {
        if (number < 0 || number >= size) {
            throw IndexError("numbers: expected 0 to " + std::to_string(size - 1) +
                             ", the numbers of " + std::to_string(size) + " strings, got " +
                             std::to_string(number));
        }
    }
    return copy_strings(impl_->table, wanted.data(), wanted.size());
}

StringRows StringIndex::strings() const {
    std::shared_lock const guard(impl_->lock);
    return copy_strings(impl_->table, nullptr, impl_->table.size());
}

std::int64_t StringIndex::size() const {
    std::shared_lock const guard(impl_->lock);
    return static_cast<std::int64_t>(impl_->table.size());
}

std::uint64_t StringIndex::memory() const {
    std::shared_lock const guard(impl_->lock);
    return impl_->table.memory();
}

StringIndex StringIndex::clone() const {
    std::shared_lock const guard(impl_->lock);
    auto copy = std::make_unique<Impl>(impl_->table.secret());
    copy->table = impl_->table;
    return StringIndex(std::move(copy));
}

}  // namespace tensorhash
