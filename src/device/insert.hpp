// Bodies that insert: claim slots, let the earliest row of each key win, give the winners buffer
// indices in row order, write their keys.
#pragma once

#include "device/find.hpp"
#include "device/pieces.hpp"
#include "device/segments.hpp"
#include "tensorhash/step/insert.hpp"

namespace tensorhash::device {

/// What the claims of one thread add up to.
struct ClaimCounts {
    std::uint32_t claimed = 0;
    std::uint32_t from_erased = 0;
    std::uint32_t undecided = 0;

    TH_STEP void write(BatchView const& batch, std::uint64_t row, step::Claim const& c,
                       std::uint32_t* broken) {
        bool const took = c.claimed == step::Claimed::Empty || c.claimed == step::Claimed::Erased;
        if (c.claimed == step::Claimed::Beyond) {
            raise_flag(broken);
        }
        batch.positions[row] = c.position;
        batch.buf_indices[row] = c.buf_index;
        batch.mask[row] = took ? 1 : 0;
        claimed += took ? 1 : 0;
        from_erased += c.claimed == step::Claimed::Erased ? 1 : 0;
        undecided += c.claimed == step::Claimed::Undecided ? 1 : 0;
    }
    /// Collective over the warp.
    TH_STEP void add_to(State* state) const {
        add_over_warp(&state->claimed, claimed);
        add_over_warp(&state->from_erased, from_erased);
        add_over_warp(&state->undecided, undecided);
    }
};

template <class Reader>
struct ClaimRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        BatchView const b = with_base(batch, state);
        ClaimCounts counts;
        for_rows(rows, [&](std::uint64_t row) {
            step::Claim const c = step::claim(index, index.hash(b.keys, row), b, row);
            counts.write(b, row, c, &state->broken);
        });
        counts.add_to(state);
    }
};

template <class Reader, std::uint32_t N>
struct ClaimRowsByTile {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        typename step::IndexOf<Reader, ByTile<N, step::Shared>>::type const index(view);
        BatchView const b = with_base(batch, state);
        ClaimCounts counts;
        for_rows_by_tile<N>(index, b, rows,
                            [&](std::uint64_t row, std::uint64_t hash, bool is_mine) {
                                step::Claim const c = step::claim(index, hash, b, row);
                                if (is_mine) {
                                    counts.write(b, row, c, &state->broken);
                                }
                            });
        counts.add_to(state);
    }
};

/// Rows that met a slot without a ticket join it now.
template <class Reader>
struct JoinLateRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State const* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        if (state->undecided == 0 || state->broken != 0) {
            return;
        }
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        BatchView const b = with_base(batch, state);
        for_rows(rows, [&](std::uint64_t row) { step::join_late(index, b, row); });
    }
};

/// After all claims: which rows won their key, and how many of each segment did.
template <class Reader>
struct SettleRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State const* state;
    std::uint32_t* counts;  // [segments_of(rows)]
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        if (is_settled(state, rows)) {
            return;
        }
        typename step::IndexOf<Reader, step::Exclusive>::type const index(view);
        BatchView const b = with_base(batch, state);
        count_segments(
            rows,
            [&](std::uint64_t row, bool is_row) { return is_row && step::settle(index, b, row); },
            [&](std::uint64_t segment, std::uint32_t count) { counts[segment] = count; });
    }
};

/// Gives the winners buffer indices: freed ones from the top of their stack, then fresh ones.
template <class Reader>
struct PublishRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State const* state;
    std::uint32_t const* ranks;  // the counts of SettleRows, scanned
    std::uint32_t const* free;   // the free stack, bottom first
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        if (is_settled(state, rows)) {
            return;
        }
        typename step::IndexOf<Reader, step::Exclusive>::type const index(view);
        BatchView const b = with_base(batch, state);
        std::uint32_t const reusable = state->free;
        rank_segments(
            rows, ranks, [&](std::uint64_t row, bool is_row) { return is_row && b.mask[row] != 0; },
            [&](std::uint64_t row, std::uint32_t rank) {
                bool const reuses = rank < reusable;
                step::publish(index, b, row,
                              reuses ? free[reusable - 1 - rank] : b.base + (rank - reusable));
            });
    }
};

/// Rows that lost get their winner's buffer index. Winners write their keys and become live. If the
/// index is corrupt, no row gets an index.
struct FinishRows {
    using Shared = NoShared;
    BatchView batch;
    State const* state;
    unsigned char* key_buffer;
    std::uint32_t* live;
    std::uint32_t key_bytes;
    std::uint32_t piece;  // divides the key size and both addresses
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        BatchView const b = with_base(batch, state);
        if (state->broken != 0) {
            return for_rows(rows, [&](std::uint64_t row) {
                b.buf_indices[row] = step::kNotFound;
                b.mask[row] = 0;
            });
        }
        set_fresh_bits(b.base);
        for_rows(rows, [&](std::uint64_t row) {
            std::uint32_t const buf_index = b.buf_indices[row];
            if (b.mask[row] == 0) {
                // Winners are read here and losers are written: no row is both.
                if (buf_index >= b.base) {
                    b.buf_indices[row] = b.buf_indices[buf_index - b.base];
                }
                return;
            }
            copy_row(key_buffer + std::uint64_t{buf_index} * key_bytes, b.keys + row * key_bytes,
                     key_bytes, piece);
            if (buf_index < b.base) {
                fetch_or(&live[buf_index / 32], 1u << (buf_index % 32));
            }
        });
    }

private:
    /// Fresh indices follow each other from `base` on: one operation for 32 of them.
    TH_STEP void set_fresh_bits(std::uint32_t base) const {
        std::uint32_t const reused = state->claimed < state->free ? state->claimed : state->free;
        std::uint32_t const end = base + (state->claimed - reused);
        if (end == base) {
            return;
        }
        std::uint32_t const first = base / 32;
        for_rows((end - 1) / 32 - first + 1, [&](std::uint64_t i) {
            std::uint32_t const word = first + static_cast<std::uint32_t>(i);
            std::uint32_t bits = ~0u;
            if (word == first) {
                bits &= ~0u << (base % 32);
            }
            if (word == (end - 1) / 32) {
                bits &= ~0u >> (31 - (end - 1) % 32);
            }
            fetch_or(&live[word], bits);
        });
    }
};

TH_STEP void forget_claims(State* state) {
    state->claimed = 0;
    state->from_erased = 0;
    state->undecided = 0;
}

/// One thread: the batch becomes part of the table.
struct FinishInsert {
    using Shared = NoShared;
    State* state;

    TH_STEP void operator()(NoShared&) const {
        if (Thread::in_grid() != 0) {
            return;
        }
        if (state->broken != 0) {
            return forget_claims(state);
        }
        std::uint32_t const claimed = state->claimed;
        std::uint32_t const reused = claimed < state->free ? claimed : state->free;
        state->top += claimed - reused;
        state->free -= reused;
        state->occupied += claimed - state->from_erased;
        forget_claims(state);
    }
};

/// One thread: a batch that failed leaves no claims in the state.
struct ForgetClaims {
    using Shared = NoShared;
    State* state;

    TH_STEP void operator()(NoShared&) const {
        if (Thread::in_grid() == 0) {
            forget_claims(state);
        }
    }
};

}  // namespace tensorhash::device
