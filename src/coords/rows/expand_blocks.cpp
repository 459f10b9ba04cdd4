// Marks the cells of all rows and sums in blocks of 64 bits, and so knows how many rows the result
// has. Then takes the rows and, offset by offset, their sums in order. The first that finds its bit
// set clears it and is written. The sums of one offset are distinct, so they may clear their bits
// in any order: block by block, which reads the blocks in sequence.
#include "coords/rows/expand_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <vector>

#include "coords/rows/cell_frame.hpp"
#include "runtime/block_vector.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/table.hpp"

namespace tensorhash::coords {
namespace {

// Keys that are looked up together: enough work for every thread, few enough for the cache.
constexpr std::size_t kChunk = std::size_t{1} << 17;

/// Blocks by number, and their bits. Bits of one word may change on several threads at once.
/// Relaxed everywhere: tasks are joined between setting, reading and clearing.
class BitBlocks {
public:
    BitBlocks() : table_({Dtype::UInt64, {}}, {{Dtype::UInt64, {}}}, 0), mask_(kChunk) {}

    /// ids[i] = the block with this number; new blocks are empty. At most kChunk at once.
    void add(std::uint64_t const* numbers, std::size_t count, std::uint32_t* ids) {
        table_.activate(reinterpret_cast<table::Bytes>(numbers), count, {ids, mask_.data()},
                        table::KeySource::Private);
        bits_ = table_.size() == 0
                    ? nullptr
                    : const_cast<std::uint64_t*>(
                          reinterpret_cast<std::uint64_t const*>(table_.values()[0].row(0)));
    }
    std::size_t count() const noexcept { return table_.size(); }
    std::uint64_t number(std::size_t id) const noexcept {
        return reinterpret_cast<std::uint64_t const*>(table_.keys().row(0))[id];
    }
    std::uint64_t bits(std::size_t id) const noexcept {
        return std::atomic_ref(bits_[id]).load(std::memory_order_relaxed);
    }
    void set(std::size_t id, std::uint64_t bits) noexcept {
        std::atomic_ref(bits_[id]).fetch_or(bits, std::memory_order_relaxed);
    }
    void clear(std::size_t id, std::uint64_t bits) noexcept {
        std::atomic_ref(bits_[id]).fetch_and(~bits, std::memory_order_relaxed);
    }
    /// The number of bits that are set.
    std::size_t total() const {
        std::atomic<std::size_t> sum{0};
        runtime::for_ranges(count(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            std::size_t here = 0;
            for (std::size_t id = begin; id < end; ++id) {
                here += static_cast<std::size_t>(std::popcount(bits(id)));
            }
            sum.fetch_add(here, std::memory_order_relaxed);
        });
        return sum.load(std::memory_order_relaxed);
    }

private:
    table::Table table_;
    std::vector<unsigned char> mask_;
    std::uint64_t* bits_ = nullptr;
};

template <class Int>
class BlockExpansion {
public:
    BlockExpansion(std::span<Int const> values, std::size_t columns, CellFrame const& frame,
                   CellSteps const& steps, std::span<std::int64_t const> offsets)
        : values_(values), columns_(columns), rows_(values.size() / columns), frame_(frame),
          steps_(steps), offsets_(offsets), order_(rows_), cells_(rows_) {}

    /// Marks the rows. Returns whether they are distinct.
    bool mark_rows() {
        runtime::BlockVector<std::uint32_t> const homes = add_homes();
        runtime::for_ranges(rows_, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) blocks_.set(homes[i], bit_of(row(i)));
        });
        if (blocks_.total() != rows_) return false;
        sort_rows(homes);
        return true;
    }

    /// Marks the sums. Returns the number of distinct rows and sums.
    std::size_t mark_sums() {
        home_bits_.resize(blocks_.count());
        for (std::size_t id = 0; id < home_bits_.size(); ++id) home_bits_[id] = blocks_.bits(id);
        reached_.resize(home_bits_.size() * deltas());
        std::size_t const step = std::max<std::size_t>(1, kChunk / deltas());
        for (std::size_t home = 0; home < home_bits_.size(); home += step) {
            add_reached(home, std::min(home_bits_.size(), home + step));
        }
        runtime::for_ranges(home_bits_.size(), 256, [&](std::size_t begin, std::size_t end) {
            std::vector<std::uint64_t> sums(deltas());
            for (std::size_t home = begin; home < end; ++home) mark_sums_of(home, sums);
        });
        return blocks_.total();
    }

    /// The rows have moved.
    void set_rows(std::span<Int const> values) noexcept { values_ = values; }

    /// Writes the distinct rows and sums of rows [begin, end), which are all of one batch. Returns
    /// their number. Batches go in order: so do their home blocks.
    std::size_t write(std::size_t begin, std::size_t end, Int* out) {
        std::size_t const first_home = last_home_;
        while (begins_[last_home_] < end) ++last_home_;
        for (std::size_t home = first_home; home < last_home_; ++home) {
            blocks_.clear(home, home_bits_[home]);
        }
        if (out != row(begin)) std::copy(row(begin), row(end), out);
        is_new_.resize((end - begin + 63) / 64);
        std::size_t written = end - begin;
        for (std::size_t offset = 0; offset < offsets_.size() / frame_.axes; ++offset) {
            std::fill(is_new_.begin(), is_new_.end(), 0);
            find_new(first_home, begin, offset);
            written += write_new(begin, offset, out + written * columns_);
        }
        return written;
    }

private:
    Int const* row(std::size_t i) const noexcept { return values_.data() + i * columns_; }
    std::size_t deltas() const noexcept { return steps_.deltas.size(); }

    std::uint64_t bit_of(Int const* one) const noexcept {
        return std::uint64_t{1} << frame_.cell(one);
    }

    /// The home block of each row.
    runtime::BlockVector<std::uint32_t> add_homes() {
        runtime::BlockVector<std::uint32_t> homes(rows_);
        runtime::BlockVector<std::uint64_t> numbers(std::min(rows_, kChunk));
        for (std::size_t first = 0; first < rows_; first += kChunk) {
            std::size_t const count = std::min(kChunk, rows_ - first);
            runtime::for_ranges(count, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) numbers[i] = frame_.block(row(first + i));
            });
            blocks_.add(numbers.data(), count, homes.data() + first);
        }
        return homes;
    }

    /// By home block, so that what belongs to a block is read once for all its rows.
    void sort_rows(runtime::BlockVector<std::uint32_t> const& homes) {
        begins_.assign(blocks_.count() + 2, 0);
        for (std::uint32_t const home : homes) ++begins_[home + 1];
        runtime::scan(begins_);  // shifted by one home block: placing a row moves its begin
        for (std::size_t i = 0; i < rows_; ++i) {
            std::uint32_t const place = begins_[homes[i] + 1]++;
            order_[place] = static_cast<std::uint32_t>(i);
            cells_[place] = static_cast<std::uint8_t>(frame_.cell(row(i)));
        }
    }

    /// Calls body(home, delta) for the blocks that sums of these home blocks reach.
    template <class Body>
    void for_reached(std::size_t begin, std::size_t end, Body&& body) const {
        for (std::size_t home = begin; home < end; ++home) {
            for (std::size_t delta = 0; delta < deltas(); ++delta) {
                if ((home_bits_[home] & steps_.reach[delta]) != 0) body(home, delta);
            }
        }
    }

    void add_reached(std::size_t first, std::size_t last) {
        runtime::BlockVector<std::uint64_t> numbers;
        runtime::BlockVector<std::uint32_t> ids;
        auto const chunks = runtime::cut(last - first, 256);
        runtime::select(
            chunks,
            [&](std::size_t begin, std::size_t end) {
                std::size_t count = 0;
                for_reached(first + begin, first + end, [&](std::size_t, std::size_t) { ++count; });
                return count;
            },
            [&](std::size_t count) {
                numbers.resize(count);
                ids.resize(count);
            },
            [&](std::size_t begin, std::size_t end, std::size_t place) {
                for_reached(first + begin, first + end, [&](std::size_t home, std::size_t delta) {
                    numbers[place] = blocks_.number(home) + steps_.deltas[delta];
                    reached_[home * deltas() + delta] = static_cast<std::uint32_t>(place++);
                });
            });
        blocks_.add(numbers.data(), numbers.size(), ids.data());
        runtime::for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
            for_reached(first + begin, first + end, [&](std::size_t home, std::size_t delta) {
                std::uint32_t& reached = reached_[home * deltas() + delta];
                reached = ids[reached];
            });
        });
    }

    void mark_sums_of(std::size_t home, std::vector<std::uint64_t>& sums) {
        std::fill(sums.begin(), sums.end(), 0);
        for (std::uint64_t left = home_bits_[home]; left != 0; left &= left - 1) {
            std::uint64_t const* const hits =
                &steps_.hits[static_cast<std::size_t>(std::countr_zero(left)) * deltas()];
            for (std::size_t delta = 0; delta < deltas(); ++delta) sums[delta] |= hits[delta];
        }
        for (std::size_t delta = 0; delta < deltas(); ++delta) {
            if (sums[delta] != 0) blocks_.set(reached_[home * deltas() + delta], sums[delta]);
        }
    }

    /// Takes the bits of the sums with one offset, and marks the rows that found theirs.
    void find_new(std::size_t first_home, std::size_t first_row, std::size_t offset) {
        std::size_t const homes = last_home_ - first_home;
        runtime::for_ranges(homes, 1024, [&](std::size_t from, std::size_t to) {
            for (std::size_t home = first_home + from; home < first_home + to; ++home) {
                std::uint32_t const* const reached = &reached_[home * deltas()];
                for (std::size_t at = begins_[home]; at < begins_[home + 1]; ++at) {
                    auto const step = steps_.step(offset, cells_[at]);
                    std::uint64_t const bit = std::uint64_t{1} << step.cell;
                    if ((blocks_.bits(reached[step.delta]) & bit) == 0) continue;
                    blocks_.clear(reached[step.delta], bit);
                    std::size_t const row = order_[at] - first_row;
                    std::atomic_ref(is_new_[row / 64])
                        .fetch_or(std::uint64_t{1} << row % 64, std::memory_order_relaxed);
                }
            }
        });
    }

    /// Writes the sums of the marked rows. Returns their number.
    std::size_t write_new(std::size_t first_row, std::size_t offset, Int* out) {
        std::int64_t const* const by = &offsets_[offset * frame_.axes];
        std::size_t total = 0;
        runtime::select(
            runtime::cut(is_new_.size(), runtime::kGrain / 64),
            [&](std::size_t begin, std::size_t end) {
                std::size_t count = 0;
                for (std::size_t i = begin; i < end; ++i) {
                    count += static_cast<std::size_t>(std::popcount(is_new_[i]));
                }
                return count;
            },
            [&](std::size_t count) { total = count; },
            [&](std::size_t begin, std::size_t end, std::size_t at) {
                for (std::size_t i = begin; i < end; ++i) {
                    for (std::uint64_t left = is_new_[i]; left != 0; left &= left - 1) {
                        auto const bit = static_cast<std::size_t>(std::countr_zero(left));
                        write_sum(row(first_row + 64 * i + bit), by, out + at++ * columns_);
                    }
                }
            });
        return total;
    }

    void write_sum(Int const* from, std::int64_t const* by, Int* to) const noexcept {
        to[0] = from[0];
        for (std::size_t axis = 0; axis < frame_.axes; ++axis) {
            to[axis + 1] = static_cast<Int>(from[axis + 1] + by[axis]);
        }
    }

    std::span<Int const> values_;
    std::size_t columns_;
    std::size_t rows_;
    CellFrame const& frame_;
    CellSteps const& steps_;
    std::span<std::int64_t const> offsets_;
    BitBlocks blocks_;
    runtime::BlockVector<std::uint32_t> order_;      // rows by home block
    runtime::BlockVector<std::uint8_t> cells_;       // of these rows in their home blocks
    runtime::BlockVector<std::uint32_t> begins_;     // [home block]: its first row in order_
    runtime::BlockVector<std::uint64_t> home_bits_;  // [home block]: the cells of rows
    runtime::BlockVector<std::uint32_t> reached_;    // [home block, delta]: the block there, if any
    runtime::BlockVector<std::uint64_t> is_new_;     // [row of the batch]: bits
    std::size_t last_home_ = 0;                      // home blocks of the batches written so far
};

/// Rows by batch, otherwise in order. Copies them only if they are not sorted yet.
template <class Int>
Tensor sorted_by_batch(Tensor const& rows) {
    auto const columns = static_cast<std::size_t>(rows.shape()[1]);
    auto const values = rows.as<Int>();
    bool is_sorted = true;
    for (std::size_t i = columns; i < values.size(); i += columns) {
        is_sorted &= values[i - columns] <= values[i];
    }
    if (is_sorted) return rows;
    std::vector<std::uint32_t> order(values.size() / columns);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return values[a * columns] < values[b * columns];
    });
    Tensor sorted = Tensor::empty(rows.shape(), rows.dtype());
    auto* to = static_cast<Int*>(sorted.data());
    for (std::uint32_t const row : order) to = std::copy_n(&values[row * columns], columns, to);
    return sorted;
}

/// Memory for `count` rows. `begins_with_rows`: the memory of `rows` grows if it can, so that no
/// second copy of them is alive.
template <class Int>
Tensor make_result(BatchedRows& rows, std::size_t count, bool begins_with_rows) {
    Shape const shape{static_cast<std::int64_t>(count), static_cast<std::int64_t>(rows.columns)};
    std::size_t const bytes = count * rows.columns * sizeof(Int);
    if (!begins_with_rows || !rows.block->grow(bytes, runtime::Fill::Committed)) {
        return Tensor::empty(shape, rows.tensor.dtype());
    }
    void* const data = rows.block->data();
    return Tensor::borrow(data, shape, rows.tensor.dtype(), rows.block);
}

template <class Int>
std::optional<BatchedCoords> expand(BatchedRows& rows, std::span<std::int64_t const> offsets) {
    auto const frame = CellFrame::of(rows.tensor.as<Int>(), rows.columns, offsets);
    if (!frame) return {};
    auto const steps = CellSteps::of(*frame, offsets);
    if (!steps) return {};
    Tensor const sorted = sorted_by_batch<Int>(rows.tensor);
    std::span<Int const> values = sorted.as<Int>();
    BlockExpansion<Int> expansion(values, rows.columns, *frame, *steps, offsets);
    if (!expansion.mark_rows()) return {};
    bool const one_batch = values.front() == values[values.size() - rows.columns];
    Tensor coords = make_result<Int>(rows, expansion.mark_sums(), one_batch);
    auto* const out = static_cast<Int*>(coords.data());
    if (coords.data() == rows.block->data()) {  // the rows may have moved with it
        values = {out, values.size()};
        expansion.set_rows(values);
    }
    std::vector<std::int64_t> begins(rows.batches ? *rows.batches : 0);  // of the batches
    std::size_t written = 0;
    for (std::size_t begin = 0; begin < rows.rows;) {
        Int const batch = values[begin * rows.columns];
        std::size_t end = begin;
        while (end < rows.rows && values[end * rows.columns] == batch) ++end;
        std::size_t const count = expansion.write(begin, end, out + written * rows.columns);
        if (!rows.batches) begins.push_back(0);
        begins[rows.batches ? static_cast<std::size_t>(batch) : begins.size() - 1] =
            static_cast<std::int64_t>(count);
        written += count;
        begin = end;
    }
    begins.push_back(0);
    runtime::scan(begins);
    return BatchedCoords{std::move(coords), Tensor::from(begins)};
}

}  // namespace

std::optional<BatchedCoords> expand_by_blocks(BatchedRows& rows,
                                              std::span<std::int64_t const> offsets) {
    if (rows.rows == 0 || offsets.empty()) return {};
    return rows.tensor.dtype() == Dtype::Int64 ? expand<std::int64_t>(rows, offsets)
                                               : expand<std::int32_t>(rows, offsets);
}

}  // namespace tensorhash::coords
