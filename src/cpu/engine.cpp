// The loops of engine.hpp, compiled once per instruction-set level; TH_ISA names the level. Uses
// only plain types of the standard library, so that the linker cannot share code between levels.
// `claim_rows` has over 50 lines: its lambdas share registers.
#include "cpu/engine.hpp"

#include "cpu/erase_loops.hpp"
#include "cpu/find_together.hpp"
#include "cpu/level_name.hpp"
#include "cpu/pipeline.hpp"
#include "cpu/readers.hpp"
#include "cpu/settle.hpp"
#include "runtime/wanted_rows.hpp"
#include "tensorhash/step/find.hpp"
#include "tensorhash/step/insert.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

using namespace step;

// Prefetch distance of loops over known positions.
constexpr std::size_t kNear = 32;

/// Writes the result of a find.
inline TH_INLINED void answer(BatchView const& batch, std::size_t row, Match const& at) {
    batch.buf_indices[row] = at.buf_index;
    batch.mask[row] = at.buf_index != kNotFound ? 1 : 0;
}

template <class Reader>
void find_rows(IndexView const& view, BatchView const& rows, std::size_t begin, std::size_t end) {
    typename IndexOf<Reader, Exclusive>::type const index(view);
    // A copy stays in registers: stores to the mask cannot change it.
    BatchView const batch = rows;
    BatchRows const hash_rows(index, batch.keys);
    auto const finish = [&](std::size_t row, std::uint64_t hash)
                            TH_INLINED { answer(batch, row, find(index, hash, batch, row)); };
    if constexpr (Reader::kNarrow) {
        auto const step = [&](std::size_t row, std::uint64_t hash, std::uint64_t home) TH_INLINED {
            Match at;
            bool const known = find_at_home(index, hash, home, at);
            answer(batch, row, at);
            return known;
        };
        auto const half_way = [](std::size_t, std::uint64_t, std::uint64_t) {};
        pipeline<false>(index, begin, end, RowWork{hash_rows, half_way, step, finish});
    } else {
        // The row's result holds the guess until it is confirmed.
        auto const half_way = [&](std::size_t row, std::uint64_t hash, std::uint64_t home)
                                  TH_INLINED { answer(batch, row, guess(index, hash, home)); };
        auto const step = [&](std::size_t row, std::uint64_t, std::uint64_t) TH_INLINED {
            return confirm(index, batch.buf_indices[row], batch, row);
        };
        pipeline<false>(index, begin, end, RowWork{hash_rows, half_way, step, finish});
    }
}

/// Writes the results of rows that claim a slot, for all rows at once. claim_rows() overwrites the
/// results of the other rows.
void answer_as_claimed(BatchView const batch, std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
        batch.buf_indices[row] = batch.base + static_cast<std::uint32_t>(row);
        batch.mask[row] = 1;
    }
}

/// See cpu::settle().
inline TH_INLINED void note_overtaken(BatchView const& batch, std::size_t row,
                                      std::uint32_t overtaken) {
    batch.positions[row] = overtaken - batch.base;
    batch.mask[row] = kOvertook;
}

// After a hit, assume that the next 256 rows also hit.
constexpr std::size_t kExpectHits = 256;

template <class Reader, class Access>
ClaimCount claim_rows(IndexView const& view, BatchView const& rows, std::size_t begin,
                      std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    BatchView const batch = rows;
    ClaimCount count;
    answer_as_claimed(rows, begin, end);
    std::uint64_t others = 0;
    // Rows below this are expected to be in the table. It never falls, also when a late row is
    // finished: a row that has a candidate must remain below it.
    std::size_t expect_hits_below = begin;
    auto const lost = [&](std::size_t row) TH_INLINED {
        batch.mask[row] = 0;
        ++others;
        if constexpr (!Reader::kNarrow) {
            std::size_t const until = row + kExpectHits;
            expect_hits_below = until > expect_hits_below ? until : expect_hits_below;
        }
    };
    auto const note_rare = [&](std::size_t row, Claim const& c) TH_INLINED {
        if (c.claimed == Claimed::Undecided) {
            batch.mask[row] = kUndecidedRow;
            ++count.undecided;
        } else {
            note_overtaken(batch, row, c.overtaken);
            ++count.overtook;
        }
    };
    auto const work = [&, lost](std::size_t row, std::uint64_t hash, std::uint64_t home,
                                ProbeRange range) TH_INLINED {
        Claim const c = claim(index, hash, home, batch, row, range);
        if (c.claimed == Claimed::Beyond) {
            return false;
        }
        batch.positions[row] = c.position;
        if (c.claimed != Claimed::Empty && c.claimed != Claimed::Erased) {
            batch.buf_indices[row] = c.buf_index;
            lost(row);
            if (c.claimed != Claimed::Nothing) [[unlikely]] {
                note_rare(row, c);
            }
        }
        count.from_erased += c.claimed == Claimed::Erased ? 1 : 0;
        return true;
    };
    BatchRows const hash_rows(index, batch.keys);
    // Takes the hash by reference, because most rows never read it. The row's result holds the
    // candidate until it is confirmed.
    auto const half_way = [&](std::size_t row, std::uint64_t const& hash,
                              std::uint64_t home) TH_INLINED {
        if constexpr (!Reader::kNarrow) {
            if (row < expect_hits_below) {
                Match const at = earlier_candidate(index, hash, home, batch, row);
                batch.buf_indices[row] = at.buf_index;
                batch.positions[row] = at.position;
            }
        }
    };
    // True if the row has a candidate and lost to it. Rows without one have their own index, as
    // answer_as_claimed() wrote it.
    auto const lost_to_candidate = [&, lost](std::size_t row) TH_INLINED {
        if constexpr (!Reader::kNarrow) {
            std::uint32_t const mine = batch.base + static_cast<std::uint32_t>(row);
            if (row < expect_hits_below && batch.buf_indices[row] != mine) {
                if (is_candidate(index, batch.buf_indices[row], batch, row)) {
                    lost(row);
                    return true;
                }
                batch.buf_indices[row] = mine;
            }
        }
        return false;
    };
    // Captures by copy: by reference, GCC would keep all captures in memory in loops with a CAS.
    auto const step = [work, lost_to_candidate](std::size_t row, std::uint64_t hash,
                                                std::uint64_t home) TH_INLINED {
        return lost_to_candidate(row) || work(row, hash, home, ProbeRange::Home);
    };
    auto const finish = [work, &index](std::size_t row, std::uint64_t hash)
                            TH_INLINED { work(row, hash, index.home(hash), ProbeRange::All); };
    pipeline<true>(index, begin, end, RowWork{hash_rows, half_way, step, finish});
    count.claimed = end - begin - others;
    return count;
}

template <class Reader>
std::uint64_t join_late_rows(IndexView const& view, BatchView const& batch, std::size_t begin,
                             std::size_t end) {
    typename IndexOf<Reader, Shared>::type const index(view);
    std::uint64_t overtook = 0;
    for (std::size_t row = begin; row < end; ++row) {
        if (end - row >= 8 && !is_any_marked(batch.mask + row)) {
            row += 7;
            continue;
        }
        if (batch.mask[row] != kUndecidedRow) {
            continue;
        }
        batch.mask[row] = 0;
        std::uint32_t const overtaken = join_late(index, batch, row);
        if (overtaken != kNotFound) {
            note_overtaken(batch, row, overtaken);
            ++overtook;
        }
    }
    return overtook;
}

/// Undoes claims.
template <class Reader, class Access>
ReleaseCount release_claims(IndexView const& view, BatchView const& batch, std::size_t begin,
                            std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    ReleaseCount count;
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t const ahead = row + kNear;
        if (ahead < end && batch.buf_indices[ahead] != kNotFound) {
            index.prefetch_ticket(batch.positions[ahead]);
        }
        bool const released =
            batch.buf_indices[row] >= batch.base && holds_claim(index, batch, row);
        batch.mask[row] = released ? 1 : 0;
        if (released) {
            ++count.released;
            count.to_erased += release(index, batch.positions[row]) == Released::ToErased ? 1 : 0;
        }
    }
    return count;
}

template <class Reader, class Access>
void place_live(IndexView const& view, LiveRange const& range) {
    typename IndexOf<Reader, Access>::type const index(view);
    // Collects live buffer indices word by word and places them in batches: gaps cost nothing and
    // the pipeline stays full.
    constexpr std::size_t kBatch = 4096;
    std::uint32_t buf_indices[kBatch];
    std::size_t count = 0;
    auto const hash_of = [&](std::size_t i)
                             TH_INLINED { return index.hash(view.key_buffer, buf_indices[i]); };
    RowByRow const hash_rows{hash_of};
    auto const half_way = [](std::size_t, std::uint64_t, std::uint64_t) {};
    auto const step = [&](std::size_t i, std::uint64_t hash, std::uint64_t home) TH_INLINED {
        return place(index, hash, home, buf_indices[i], ProbeRange::Home);
    };
    auto const finish = [&](std::size_t i, std::uint64_t hash) {
        place(index, hash, buf_indices[i]);
    };
    auto const flush = [&] {
        pipeline<true>(index, 0, count, RowWork{hash_rows, half_way, step, finish});
        count = 0;
    };
    for (std::size_t buf_index = range.begin; buf_index < range.end;) {
        std::uint64_t bits = range.live[buf_index / 64] >> (buf_index % 64);
        std::size_t const stop = buf_index / 64 * 64 + 64;
        for (; bits != 0 && buf_index < range.end; ++buf_index, bits >>= 1) {
            if ((bits & 1) != 0) {
                buf_indices[count++] = static_cast<std::uint32_t>(buf_index);
            }
        }
        buf_index = stop;
        if (count + 64 > kBatch) {
            flush();
        }
    }
    flush();
}

template <class Reader>
void follow_rows(IndexView const& view, BatchView const& rows, std::size_t begin, std::size_t end) {
    typename IndexOf<Reader, Exclusive>::type const index(view);
    BatchView const batch = rows;
    auto const has_lost = [=](std::size_t row) TH_INLINED {
        return (batch.mask[row] == 0) & (batch.buf_indices[row] >= batch.base);
    };
    runtime::for_wanted_rows(begin, end, has_lost, [&](std::size_t row) TH_INLINED {
        std::uint32_t const met = batch.buf_indices[row];
        std::uint32_t answer = Shared::load(&batch.buf_indices[met - batch.base]);
        // A row that was overtaken, or undecided and lost, has its own number until it follows,
        // perhaps on another thread.
        if (answer == met && batch.mask[met - batch.base] == 0) {
            answer = to_buf_index(index.ticket(batch.positions[row]));
        }
        Shared::store(&batch.buf_indices[row], answer);
    });
}

template <class Reader>
void publish_rows(IndexView const& view, BatchView const& rows, std::size_t begin, std::size_t end,
                  std::uint64_t rank, std::uint32_t const* free_top, std::uint64_t reusable) {
    // Each winner writes only its own slot, so no two rows share one.
    typename IndexOf<Reader, Exclusive>::type const index(view);
    BatchView const batch = rows;
    runtime::for_wanted_rows<kNear>(
        begin, end, [=](std::size_t row) TH_INLINED { return batch.mask[row] != 0; },
        [&](std::size_t row) TH_INLINED { index.prefetch_ticket(batch.positions[row]); },
        [&](std::size_t row) TH_INLINED {
            std::uint32_t const buf_index =
                rank < reusable ? free_top[-1 - static_cast<std::ptrdiff_t>(rank)]
                                : batch.base + static_cast<std::uint32_t>(rank - reusable);
            publish(index, batch, row, buf_index);
            ++rank;
        });
}

template <class Reader>
std::uint64_t probe_buckets(IndexView const& view, BatchView const& batch, std::size_t begin,
                            std::size_t end, std::uint64_t& longest) {
    typename IndexOf<Reader, Exclusive>::type const index(view);
    std::uint64_t total = 0;
    for (std::size_t row = begin; row < end; ++row) {
        std::uint64_t const hash = index.hash(batch.keys, row);
        std::uint64_t buckets = 1;
        if (!index.is_side(hash)) {
            std::uint64_t const home = index.home(hash);
            Slot const slot = probe(index, hash, home, index.comparison(batch, row));
            buckets += slot.bucket - home + (slot.bucket < home ? index.bucket_count : 0);
        }
        total += buckets;
        longest = buckets > longest ? buckets : longest;
    }
    return total;
}

template <class Reader, class Access>
constexpr IndexLoops::Writers writers() noexcept {
    return {claim_rows<Reader, Access>, erase_rows<Reader, Access>, release_claims<Reader, Access>,
            place_live<Reader, Access>};
}

template <class Reader>
constexpr auto find_loop() noexcept {
#if defined(TH_SIMD_AVX512)
    if constexpr (Reader::kNarrow && kHasEightRows<Reader>) {
        return find_together<Reader>;
    } else {
        return find_rows<Reader>;
    }
#else
    return find_rows<Reader>;
#endif
}

template <class Reader>
IndexLoops const kTable{
    find_loop<Reader>(),    writers<Reader, Exclusive>(), writers<Reader, Shared>(),
    join_late_rows<Reader>, follow_rows<Reader>,          publish_rows<Reader>,
    hash_listed<Reader>,    put_back_listed<Reader>,      find_put_back_listed<Reader>,
    mark_listed<Reader>,    release_marked<Reader>,       probe_buckets<Reader>};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; dispatch.cpp declares one such function per level.
IndexLoops const& TH_LEVEL_NAME(index_loops_)(std::uint32_t key_bytes, std::uint32_t float_bytes);
IndexLoops const& TH_LEVEL_NAME(index_loops_)(std::uint32_t key_bytes, std::uint32_t float_bytes) {
    return with_reader(key_bytes, float_bytes, [](auto reader) -> IndexLoops const& {
        return kTable<typename decltype(reader)::type>;
    });
}

}  // namespace tensorhash::cpu
