// Chooses how wide the keys are, and looks rows up by either kind of key.
#include "coords/tables/coord_index.hpp"

#include <algorithm>
#include <utility>

#include "backend/capacities.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::coords {
namespace {

using runtime::Block;

// Rows packed or shifted at a time, in arrays on the stack.
constexpr std::size_t kBlockRows = 512;

unsigned char const* bytes_of(std::int32_t const* rows) {
    return reinterpret_cast<unsigned char const*>(rows);
}

step::KeyFormat format_of(std::uint32_t columns) {
    return {columns * static_cast<std::uint32_t>(sizeof(std::int32_t)), 0};
}

/// Memory for the results of a batch of claims.
class ClaimScratch {
public:
    explicit ClaimScratch(std::size_t rows)
        : rows_(rows), block_(rows * (2 * sizeof(std::uint32_t) + 1)) {}
    /// A view of these rows as a batch. Row i claims as base + i.
    step::BatchView batch(std::int32_t const* rows, std::uint32_t base) {
        auto* const words = reinterpret_cast<std::uint32_t*>(block_.data());
        return {bytes_of(rows), base, words, words + rows_,
                block_.data() + 2 * sizeof(std::uint32_t) * rows_};
    }

private:
    std::size_t rows_;
    Block block_;
};

}  // namespace

CoordIndex::CoordIndex(CoordRows rows, backend::CoordStoreRules const& rules)
    : slots_(rules.slots), seed_(rules.seed ? *rules.seed : runtime::new_seed()) {
    rows_.columns = rows.columns;
    if (rows.columns <= 4) {
        flat_.emplace(slots_.value_or(backend::default_slots(rows.rows)), rules.double_hash,
                      rules.published_hash ? step::HashSecret{} : step::secret_of(seed_));
    }
    extend(std::move(rows));
}

void CoordIndex::extend(CoordRows rows, std::uint64_t const* keys) {
    std::size_t const from = rows_.rows;
    std::size_t const added = rows.rows - from;
    if (flat_ && keys != nullptr) {
        extend_flat(keys, from, added);
    } else if (flat_) {
        Block scratch(added * sizeof(std::uint64_t));
        auto* const packed = reinterpret_cast<std::uint64_t*>(scratch.data());
        cpu::FlatRows const fresh{rows.data() + from * rows.columns, rows.columns, false};
        if (index::pack_rows(fresh, added, packed) == 0) {
            extend_flat(packed, from, added);
        } else {
            rebuild_wide(rows);
        }
    } else {
        extend_wide(rows);
    }
    rows_ = std::move(rows);
}

void CoordIndex::extend_flat(std::uint64_t const* keys, std::size_t from, std::size_t added) {
    std::uint64_t const wanted = backend::default_slots(flat_->size() + added);
    if (!slots_ && wanted > flat_->capacity()) {
        flat_ = flat_->grown(wanted);
    }
    if (!flat_->insert(keys, added, static_cast<std::uint32_t>(from))) {
        // Not *slots_: a growing table is full only if the caller wrote into a view of its slots.
        backend::fail_full(flat_->capacity(), flat_->size());
    }
}

void CoordIndex::extend_wide(CoordRows const& rows) {
    std::size_t const from = rows_.rows;
    std::size_t const added = rows.rows - from;
    if (!wide_ || wide_->room() < added) {
        rebuild_wide(rows);
        return;
    }
    ClaimScratch scratch(added);
    step::BatchView const batch =
        scratch.batch(rows.data() + from * rows.columns, static_cast<std::uint32_t>(from));
    unsigned char const* const all = bytes_of(rows.data());
    std::uint64_t const claimed = wide_->claim(all, batch, 0, added).claimed;
    if (slots_ && wide_distinct_ + claimed > *slots_) {
        wide_->release_claims(all, batch, added);
        backend::fail_full(*slots_, wide_distinct_);
    }
    wide_distinct_ += claimed;
}

void CoordIndex::rebuild_wide(CoordRows const& rows) {
    step::KeyFormat const format = format_of(rows.columns);
    // Twice the room, so that many small batches do not each rebuild the index.
    std::uint64_t const room = rows_.rows == 0 ? rows.rows : 2 * rows.rows;
    index::BucketIndex index(format, index::BucketIndex::buckets_for(format, room), seed_);
    ClaimScratch scratch(rows.rows);
    // With base 0 a claim's buffer index is its row, and the smallest of equal rows wins. So no
    // publish pass is needed.
    step::BatchView const batch = scratch.batch(rows.data(), 0);
    std::uint64_t const distinct = index.claim(bytes_of(rows.data()), batch, 0, rows.rows).claimed;
    if (slots_ && distinct > *slots_) {
        backend::fail_full(*slots_, this->distinct());
    }
    wide_.emplace(std::move(index));
    wide_distinct_ = distinct;
    flat_.reset();
    kind_ = rows.columns == 4 ? CoordKey::Packed128 : CoordKey::Wide;
}

void CoordIndex::find(CoordRows const& queries, std::int32_t* out, cpu::FlatWindow window) const {
    if (flat_) {
        flat_->find_rows(flat_rows(queries), queries.rows, out, window);
        return;
    }
    NarrowQueries const narrow = narrow_queries(queries);
    runtime::for_ranges(queries.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        find_wide(narrow.rows.data() + begin * columns(), end - begin, out + begin);
    });
    narrow.hide_outside(out);
}

void CoordIndex::find_shifted(std::int32_t const* queries, std::size_t begin, std::size_t end,
                              Shift const& shift, std::int32_t* out) const {
    std::uint32_t const width = columns();
    for (std::size_t at = begin; at < end; at += kBlockRows) {
        std::size_t const count = std::min(kBlockRows, end - at);
        std::int32_t const* const block_queries = queries + at * width;
        if (flat_) {
            std::uint64_t keys[kBlockRows];
            for (std::size_t i = 0; i < count; ++i) {
                keys[i] = step::shifted_or_empty(block_queries + i * width, width,
                                                 shift.scale.data(), shift.offset.data());
            }
            flat_->find_keys(keys, count, out + (at - begin));
            continue;
        }
        std::int32_t block[kBlockRows * kMaxColumns];
        bool outside[kBlockRows] = {};
        for (std::size_t i = 0; i < count; ++i) {
            for (std::uint32_t c = 0; c < width; ++c) {
                std::int64_t const moved =
                    std::int64_t{block_queries[i * width + c]} * shift.scale[c] + shift.offset[c];
                block[i * width + c] = static_cast<std::int32_t>(moved);
                outside[i] = outside[i] || !fits_int32(moved);
            }
        }
        find_wide(block, count, out + (at - begin));
        for (std::size_t i = 0; i < count; ++i) {
            out[at - begin + i] = outside[i] ? -1 : out[at - begin + i];
        }
    }
}

void CoordIndex::find_wide(std::int32_t const* rows, std::size_t count, std::int32_t* out) const {
    unsigned char mask[kBlockRows];
    auto const base = static_cast<std::uint32_t>(rows_.rows);
    for (std::size_t at = 0; at < count; at += kBlockRows) {
        std::size_t const block = std::min(kBlockRows, count - at);
        // The buffer indices are rows of the index, so all of them are below the base.
        step::BatchView const batch{bytes_of(rows + at * columns()), base, nullptr,
                                    reinterpret_cast<std::uint32_t*>(out + at), mask};
        wide_->find(bytes_of(rows_.data()), batch, block);
    }
}

}  // namespace tensorhash::coords
