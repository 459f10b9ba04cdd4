// Row loops over threads, and the counts they bring back.
#include "index/bucket_index.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <initializer_list>
#include <span>

#include "runtime/scan.hpp"

namespace tensorhash::table {

using runtime::Chunks;
using runtime::cut;
using runtime::for_chunks;
using runtime::kGrain;

namespace {

// Positions have 32 bits, eight to a line. At this size tables may be fuller than LineRule says: still under 0.8.
constexpr std::uint64_t kMaxLines = std::uint64_t{1} << 29;

constexpr std::initializer_list<std::uint64_t cpu::ReleaseCount::*> kReleased = {
    &cpu::ReleaseCount::released, &cpu::ReleaseCount::to_erased};

/// Sums the `counted` fields of what the chunks return.
template <class Count, class Body>
Count sum_chunks(Chunks const& chunks, std::initializer_list<std::uint64_t Count::*> counted,
                 Body&& body) {
    Count sum;
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        Count const here = body(begin, end);
        for (auto const field : counted) {
            std::atomic_ref(sum.*field).fetch_add(here.*field, std::memory_order_relaxed);
        }
    });
    return sum;
}

}  // namespace

Index::Index(KeyLayout layout, std::uint64_t lines, std::uint64_t seed, runtime::Fill fill)
    : layout_(layout), seed_(seed), secret_(kernel::secret_of(seed)),
      kernels_(&cpu::kernels(layout.bytes, layout.float_bytes)),
      memory_(lines * sizeof(kernel::NarrowLine), fill) {
    set_lines(lines);
}

void Index::set_lines(std::uint64_t lines) noexcept {
    auto const rule = cpu::line_rule(layout_.bytes);
    lines_ = lines;
    limit_ = lines == kMaxLines ? lines * rule.lanes - lines / 2 : lines * rule.occupied;
}

std::uint64_t Index::lines_for(KeyLayout layout, std::uint64_t capacity) {
    std::uint64_t const entries = cpu::line_rule(layout.bytes).entries;
    return std::min(std::bit_ceil(std::max<std::uint64_t>((capacity + entries - 1) / entries, 2)),
                    kMaxLines);
}

std::uint64_t Index::capacity_of(KeyLayout layout, std::uint64_t lines) {
    return lines * cpu::line_rule(layout.bytes).entries;
}

Index Index::copy() const {
    Index copied(layout_, lines_, seed_, runtime::Fill::Committed);
    runtime::copy_bytes(copied.memory_.data(), memory_.data(), lines_ * sizeof(kernel::NarrowLine));
    copied.occupied_ = occupied_;
    return copied;
}

kernel::IndexView Index::view(unsigned char const* key_buffer) const noexcept {
    return {const_cast<unsigned char*>(memory_.data()),
            lines_ - 1,
            key_buffer,
            layout_.bytes,
            layout_.float_bytes,
            secret_};
}

void Index::find(unsigned char const* key_buffer, Batch const& batch, std::size_t rows) const {
    auto const index = view(key_buffer);
    for_chunks(cut(rows, kGrain), [&](std::size_t, std::size_t begin, std::size_t end) {
        kernels_->find(index, batch, begin, end);
    });
}

cpu::ClaimCount Index::claim(unsigned char const* key_buffer, Batch const& batch, std::size_t begin,
                             std::size_t end) {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(end - begin, kGrain);
    auto* const claim_rows = writers(chunks.shared()).claim;
    auto const count = sum_chunks<cpu::ClaimCount>(
        chunks,
        {&cpu::ClaimCount::claimed, &cpu::ClaimCount::from_erased, &cpu::ClaimCount::undecided},
        [&](std::size_t from, std::size_t to) {
            return claim_rows(index, batch, begin + from, begin + to);
        });
    if (count.undecided != 0) {
        for_chunks(chunks, [&](std::size_t, std::size_t from, std::size_t to) {
            kernels_->join_late(index, batch, begin + from, begin + to);
        });
    }
    occupied_ += count.claimed - count.from_erased;
    return count;
}

void Index::release_claims(unsigned char const* key_buffer, Batch const& batch,
                           std::size_t rows) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(rows, kGrain);
    auto* const release = writers(chunks.shared()).release_claims;
    auto const count = sum_chunks<cpu::ReleaseCount>(
        chunks, kReleased,
        [&](std::size_t from, std::size_t to) { return release(index, batch, from, to); });
    occupied_ -= count.released - count.to_erased;
}

void Index::settle(unsigned char const* key_buffer, Batch const& batch, Chunks const& chunks,
                   Ranks& ranks) const noexcept {
    auto const index = view(key_buffer);
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        ranks[chunk] = kernels_->settle(index, batch, begin, end);
    });
    ranks[chunks.count] = 0;
    runtime::scan(std::span(ranks).first(chunks.count + 1));
}

void Index::publish(unsigned char const* key_buffer, Batch const& batch, std::size_t rows,
                    std::uint32_t const* free_top, std::uint64_t reusable) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(rows, kGrain);
    Ranks ranks;
    settle(key_buffer, batch, chunks, ranks);
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        kernels_->publish(index, batch, begin, end, ranks[chunk], free_top, reusable);
    });
    // Rows that lost know their winner's row; now that winners are numbered, so are they.
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            if (batch.mask[row] == 0 && batch.numbers[row] >= batch.base) {
                batch.numbers[row] = batch.numbers[batch.numbers[row] - batch.base];
            }
        }
    });
}

void Index::locate(unsigned char const* key_buffer, Batch const& batch,
                   std::size_t rows) const noexcept {
    auto const index = view(key_buffer);
    for_chunks(cut(rows, kGrain), [&](std::size_t, std::size_t begin, std::size_t end) {
        kernels_->locate(index, batch, begin, end);
    });
}

std::uint64_t Index::release(unsigned char const* key_buffer, Batch const& batch, std::size_t rows,
                             bool twice) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(rows, kGrain);
    auto const& write = writers(chunks.shared());
    if (twice) {
        for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
            write.mark(index, batch, begin, end);
        });
    }
    auto* const release_rows = twice ? write.release_marked : write.release_found;
    auto const count = sum_chunks<cpu::ReleaseCount>(
        chunks, kReleased,
        [&](std::size_t from, std::size_t to) { return release_rows(index, batch, from, to); });
    occupied_ -= count.released - count.to_erased;
    return count.released;
}

void Index::place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                  std::uint64_t count) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(top, kGrain);
    auto* const place_live = writers(chunks.shared()).place;
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        place_live(index, cpu::LiveRange{live, begin, end});
    });
    occupied_ += count;
}

void Index::clear() noexcept {
    runtime::zero_bytes(memory_.data(), lines_ * sizeof(kernel::NarrowLine));
    occupied_ = 0;
}

runtime::Extension Index::make_room(std::uint64_t lines) {
    std::size_t const used = lines_ * sizeof(kernel::NarrowLine);
    std::size_t const before = memory_.bytes();
    if (!memory_.grow(lines * sizeof(kernel::NarrowLine))) {
        return {};
    }
    // What a block has beyond the lines may be anything.
    runtime::zero_bytes(memory_.data() + used, before - used);
    return {&memory_, runtime::Shrink{before}};
}

void Index::clear(std::uint64_t lines) noexcept {
    clear();
    set_lines(lines);
}

std::uint64_t Index::count_entries() const {
    bool const narrow = cpu::is_narrow(layout_.bytes);
    auto const* const narrow_lines = reinterpret_cast<kernel::NarrowLine const*>(memory_.data());
    auto const* const wide_lines = reinterpret_cast<kernel::WideLine const*>(memory_.data());
    std::atomic<std::uint64_t> entries{0};
    runtime::for_ranges(lines_, kGrain, [&](std::size_t begin, std::size_t end) {
        std::uint64_t here = 0;
        for (std::size_t line = begin; line < end; ++line) {
            if (narrow) {
                // The spare ticket is one only where no traces are kept.
                std::size_t const tickets =
                    kernel::NarrowLine::kLanes + (kernel::NarrowLine::keeps_traces(line) ? 0 : 1);
                for (std::size_t lane = 0; lane < tickets; ++lane) {
                    here += narrow_lines[line].tickets[lane] != kernel::kNoTicket ? 1 : 0;
                }
            } else {
                for (auto const slot : wide_lines[line].slots) {
                    here += kernel::holds_key(slot) ? 1 : 0;
                }
            }
        }
        entries.fetch_add(here, std::memory_order_relaxed);
    });
    return entries.load(std::memory_order_relaxed);
}

ProbeLengths Index::probe_lengths(unsigned char const* key_buffer, Batch const& batch,
                                  std::size_t rows) const {
    ProbeLengths lengths;
    std::uint64_t const total =
        kernels_->probe_lines(view(key_buffer), batch, 0, rows, lengths.longest);
    lengths.mean = rows == 0 ? 0 : static_cast<double>(total) / static_cast<double>(rows);
    return lengths;
}

}  // namespace tensorhash::table
