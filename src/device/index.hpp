// Index: the buckets of a table on a device, and the launches that read and write them.
#pragma once

#include <cstdint>

#include "device/array.hpp"
#include "device/erase.hpp"
#include "device/find.hpp"
#include "device/insert.hpp"
#include "device/queue.hpp"
#include "device/readers.hpp"
#include "device/rebuild.hpp"
#include "device/sizes.hpp"

namespace tensorhash::device {

/// `Lanes` work on a row together: 1, or 4 or 8 as a tile.
template <class Queue, std::uint32_t Lanes = 1>
class Index {
public:
    /// An empty index.
    Index(Queue& queue, step::KeyFormat format, std::uint64_t buckets, std::uint64_t seed)
        : queue_(&queue), format_(format), seed_(seed), secret_(step::secret_of(seed)),
          buckets_(Array<Queue, step::NarrowBucket>::zeros(queue, buckets)) {}

    std::uint64_t buckets() const noexcept { return buckets_.size(); }
    std::uint64_t bytes() const noexcept { return buckets_.bytes(); }
    std::uint64_t seed() const noexcept { return seed_; }
    std::uint64_t limit() const noexcept { return occupied_limit(format_, buckets()); }
    step::NarrowBucket* data() const noexcept { return buckets_.data(); }
    void clear() { buckets_.zero(); }

    IndexView view(unsigned char const* key_buffer) const noexcept {
        return {buckets_.data(), buckets() - 1,       key_buffer,
                format_.bytes,   format_.float_bytes, secret_};
    }

    void find(unsigned char const* key_buffer, BatchView const& batch, State* state,
              std::uint32_t rows) const {
        with_reader(format_, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            if constexpr (Lanes == 1) {
                queue_->launch(rows, FindRows<Reader>{view(key_buffer), batch, state, rows});
            } else {
                using Body = FindRowsByTile<Reader, Lanes>;
                queue_->launch(rows, Body{view(key_buffer), batch, state, rows});
            }
        });
    }

    /// Claims slots for all rows, which must have room.
    void claim(unsigned char const* key_buffer, BatchView const& batch, State* state,
               std::uint32_t rows) {
        with_reader(format_, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            if constexpr (Lanes == 1) {
                queue_->launch(rows, ClaimRows<Reader>{view(key_buffer), batch, state, rows});
            } else {
                using Body = ClaimRowsByTile<Reader, Lanes>;
                queue_->launch(rows, Body{view(key_buffer), batch, state, rows});
            }
            if constexpr (Reader::kNarrow) {
                queue_->launch(rows, JoinLateRows<Reader>{view(key_buffer), batch, state, rows});
            }
        });
    }

    /// After all claims: gives the winners their buffer indices. `counts` has one word per segment.
    void publish(unsigned char const* key_buffer, BatchView const& batch, State* state,
                 std::uint32_t const* free, std::uint32_t* counts, std::uint32_t rows) {
        with_reader(format_, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            IndexView const index = view(key_buffer);
            queue_->launch(rows, SettleRows<Reader>{index, batch, state, counts, rows});
            queue_->scan(counts, segments_of(rows), static_cast<std::uint32_t*>(nullptr));
            queue_->launch(rows, PublishRows<Reader>{index, batch, state, counts, free, rows});
        });
    }

    /// Undoes the claims of a batch.
    void release_claims(unsigned char const* key_buffer, BatchView const& batch, State* state,
                        std::uint32_t rows) {
        with_reader(format_, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            queue_->launch(rows, ReleaseClaims<Reader>{view(key_buffer), batch, state, rows});
        });
    }

    /// Releases the slots of the located rows. Counts them per segment.
    void release(unsigned char const* key_buffer, BatchView const& batch, State* state,
                 std::uint32_t* counts, std::uint32_t rows) {
        with_reader(format_, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            IndexView const index = view(key_buffer);
            queue_->launch(rows, MarkRows<Reader>{index, batch, state, rows});
            queue_->launch(rows, ReleaseRows<Reader>{index, batch, state, counts, rows});
        });
    }

    /// Fills this empty index with the live entries, which are at most `most_top`.
    void place(unsigned char const* key_buffer, std::uint32_t const* live, State* state,
               std::uint64_t most_top) {
        with_reader(format_, [&](auto tag) {
            using Reader = typename decltype(tag)::type;
            queue_->launch(most_top, PlaceLive<Reader>{view(key_buffer), live, state});
        });
    }

    /// Becomes a copy of an index with the same number of buckets.
    void copy_from(Index const& other) {
        seed_ = other.seed_;
        secret_ = other.secret_;
        queue_->copy(buckets_.data(), other.buckets_.data(), buckets_.bytes(), Copy::Within);
    }

private:
    Queue* queue_;
    step::KeyFormat format_;
    std::uint64_t seed_;
    step::HashSecret secret_;
    Array<Queue, step::NarrowBucket> buckets_;
};

}  // namespace tensorhash::device
