// The loops that erase rows, for engine.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/engine.hpp"
#include "cpu/pipeline.hpp"
#include "tensorhash/step/erase.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {

/// Writes the results of rows that erase, and counts. Counts the rows that took nothing, because
/// they are few.
template <bool WithPosition>
class EraseNotes {
public:
    explicit EraseNotes(step::BatchView const& batch) : batch_(batch) {}

    TH_INLINED void took(std::size_t row, step::Match const& at, step::Released released) {
        batch_.buf_indices[row] = at.buf_index;
        batch_.mask[row] = 1;
        if constexpr (WithPosition) {
            batch_.positions[row] = at.position;
        }
        to_erased_ += static_cast<unsigned>(released);
    }
    TH_INLINED void took_nothing(std::size_t row) {
        batch_.buf_indices[row] = step::kNotFound;
        batch_.mask[row] = 0;
        ++nothing_;
    }
    TH_INLINED void note(std::size_t row, step::Erased const& erased) {
        if (erased.took == step::Took::Entry) {
            took(row, erased.match, erased.released);
        } else {
            took_nothing(row);
        }
    }
    ReleaseCount count(std::size_t rows) const { return {rows - nothing_, to_erased_}; }

private:
    step::BatchView const batch_;
    std::uint64_t nothing_ = 0;
    std::uint64_t to_erased_ = 0;
};

template <class Reader, class Access>
ReleaseCount erase_narrow(step::IndexView const& view, step::BatchView const batch,
                          std::size_t begin, std::size_t end) {
    typename step::IndexOf<Reader, Access>::type const index(view);
    EraseNotes<Access::kShared> notes(batch);
    BatchRows const hash_rows(index, batch.keys);
    auto const half_way = [](std::size_t, std::uint64_t, std::uint64_t) {};
    auto const step = [&](std::size_t row, std::uint64_t hash, std::uint64_t home) TH_INLINED {
        step::Erased const erased = erase_at_home(index, hash, home);
        if (erased.took == step::Took::Unknown) {
            return false;
        }
        notes.note(row, erased);
        return true;
    };
    auto const finish = [&](std::size_t row, std::uint64_t hash) {
        notes.note(row, erase(index, hash, batch, row));
    };
    pipeline<true>(index, begin, end, RowWork{hash_rows, half_way, step, finish});
    return notes.count(end - begin);
}

/// The row's result holds the guess until it is confirmed.
template <class Reader, class Access>
ReleaseCount erase_wide(step::IndexView const& view, step::BatchView const batch, std::size_t begin,
                        std::size_t end) {
    typename step::IndexOf<Reader, Access>::type const index(view);
    EraseNotes<true> notes(batch);
    BatchRows const hash_rows(index, batch.keys);
    auto const half_way = [&](std::size_t row, std::uint64_t hash, std::uint64_t home) TH_INLINED {
        step::Match const at = guess(index, hash, home);
        batch.buf_indices[row] = at.buf_index;
        batch.positions[row] = at.position;
    };
    auto const finish = [&](std::size_t row, std::uint64_t hash)
                            TH_INLINED { notes.note(row, erase(index, hash, batch, row)); };
    auto const step = [&](std::size_t row, std::uint64_t hash, std::uint64_t) TH_INLINED {
        step::Match const at{batch.buf_indices[row], batch.positions[row]};
        if (at.buf_index == step::kUndecided) {
            return false;
        }
        if (at.buf_index == step::kNotFound) {
            notes.took_nothing(row);
        } else if (confirm(index, at.buf_index, batch, row) &&
                   index.ticket(at.position) == step::to_ticket(at.buf_index)) {
            notes.took(row, at, release(index, at.position));
        } else {
            // Another row may have released the slot since the guess. A wrong guess cannot wait:
            // the next row of this key may guess right.
            finish(row, hash);
        }
        return true;
    };
    pipeline<true>(index, begin, end, RowWork{hash_rows, half_way, step, finish});
    return notes.count(end - begin);
}

/// Rows of one key are decided in row order, unless another thread has the same key: if the home
/// bucket cannot decide a row, it cannot decide a later row of the same key either, because
/// releases leave the overflow bits.
template <class Reader, class Access>
ReleaseCount erase_rows(step::IndexView const& view, step::BatchView const& batch,
                        std::size_t begin, std::size_t end) {
    if constexpr (Reader::kNarrow) {
        return erase_narrow<Reader, Access>(view, batch, begin, end);
    } else {
        return erase_wide<Reader, Access>(view, batch, begin, end);
    }
}

/// Calls body(row) for the listed rows in the mask. Prefetches their slots.
template <class Index, class Body>
inline TH_INLINED void for_listed(Index const& index, step::BatchView const& batch,
                                  RowList const& list, Body const& body) {
    constexpr std::size_t kNear = 32;
    for (std::size_t i = 0; i < list.count; ++i) {
        if (i + kNear < list.count && batch.mask[list.rows[i + kNear]] != 0) {
            index.prefetch_ticket(batch.positions[list.rows[i + kNear]]);
        }
        if (batch.mask[list.rows[i]] != 0) {
            body(list.rows[i]);
        }
    }
}

/// Takes the keys from the key buffer, because those of the batch may have changed.
template <class Reader>
ReleaseCount put_back_listed(step::IndexView const& view, step::BatchView const& batch,
                             RowList const& list) {
    typename step::IndexOf<Reader, step::Shared>::type const index(view);
    ReleaseCount undone;
    for_listed(index, batch, list, [&](std::size_t row) {
        ++undone.released;
        undone.to_erased += becomes_empty(index, batch.positions[row]) ? 0 : 1;
        put_back(index, index.hash(view.key_buffer, batch.buf_indices[row]), batch, row);
    });
    return undone;
}

template <class Reader>
void find_put_back_listed(step::IndexView const& view, step::BatchView const& batch,
                          RowList const& list) {
    typename step::IndexOf<Reader, step::Exclusive>::type const index(view);
    constexpr std::size_t kNear = 16;
    for (std::size_t i = 0; i < list.count; ++i) {
        if (i + kNear < list.count && batch.mask[list.rows[i + kNear]] == 0) {
            std::uint64_t const hash = index.hash(batch.keys, list.rows[i + kNear]);
            step::prefetch(&index.buckets[index.home(hash)]);
        }
        std::size_t const row = list.rows[i];
        if (batch.mask[row] == 0) {
            bool const found = find_put_back(index, index.hash(batch.keys, row), batch, row);
            batch.mask[row] = found ? 1 : 0;
        }
    }
}

template <class Reader>
void mark_listed(step::IndexView const& view, step::BatchView const& batch, RowList const& list) {
    typename step::IndexOf<Reader, step::Shared>::type const index(view);
    for_listed(index, batch, list, [&](std::size_t row) { mark(index, batch, row); });
}

template <class Reader>
ReleaseCount release_marked(step::IndexView const& view, step::BatchView const& batch,
                            RowList const& list) {
    typename step::IndexOf<Reader, step::Shared>::type const index(view);
    ReleaseCount count;
    for_listed(index, batch, list, [&](std::size_t row) {
        if (holds_claim(index, batch, row)) {
            ++count.released;
            count.to_erased += static_cast<unsigned>(release(index, batch.positions[row]));
        } else {
            batch.mask[row] = 0;
            batch.buf_indices[row] = step::kNotFound;
        }
    });
    return count;
}

template <class Reader>
void hash_listed(step::IndexView const& view, unsigned char const* keys, RowList const& list,
                 std::uint64_t* out) {
    typename step::IndexOf<Reader, step::Exclusive>::type const index(view);
    for (std::size_t i = 0; i < list.count; ++i) {
        out[i] = index.hash(keys, list.rows[i]);
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::cpu
