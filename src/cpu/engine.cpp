// The loops of engine.hpp. Compiled once per instruction-set level, with TH_ISA naming the level; nothing of the
// standard library beyond plain types is used here, lest the linker share code between levels.
#include "cpu/engine.hpp"

#include "cpu/pipeline.hpp"
#include "tensorhash/step/erase.hpp"
#include "tensorhash/step/find.hpp"
#include "tensorhash/step/insert.hpp"

#define TH_CONCAT_(a, b) a##b
#define TH_CONCAT(a, b) TH_CONCAT_(a, b)

namespace tensorhash::cpu {
inline namespace TH_KERNEL_NAMESPACE {
namespace {

using namespace kernel;

// How far ahead passes look that visit known positions.
constexpr std::size_t kNear = 32;

/// What finding leaves for a row: where its key is, and its slot too if somebody wants to go there.
template <bool WithPositions>
inline TH_INLINED void answer(BatchView const& batch, std::size_t row, Located const& at) {
    batch.numbers[row] = at.number;
    batch.mask[row] = at.number != kNoNumber ? 1 : 0;
    if constexpr (WithPositions) {
        batch.positions[row] = at.position;
    }
}

template <class Reader, bool WithPositions>
void find_rows(IndexView const& view, BatchView const& rows, std::size_t begin, std::size_t end) {
    typename IndexOf<Reader, Sole>::type const index(view);
    BatchView const batch =
        rows;  // a copy, which no store to the mask can change: it stays in registers
    auto const hash_at = [&](std::size_t row) { return index.hash(batch.keys, row); };
    auto const finish = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
        answer<WithPositions>(batch, row, find(index, hash, batch, row));
    };
    if constexpr (Reader::kNarrow) {
        auto const step = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
            Located at;
            bool const known = find_at_home(index, hash, at);
            answer<WithPositions>(batch, row, at);
            return known;
        };
        auto const half_way = [](std::size_t, std::uint64_t) {};
        pipeline<false>(index, begin, end, RowWork{hash_at, half_way, step, finish});
    } else {
        // The guess waits in the row's answer.
        auto const half_way = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
            answer<WithPositions>(batch, row, foresee(index, hash));
        };
        auto const step = [&](std::size_t row, std::uint64_t) TH_INLINED {
            return is_right(index, batch.numbers[row], batch, row);
        };
        pipeline<false>(index, begin, end, RowWork{hash_at, half_way, step, finish});
    }
}

/// What a row that claims a slot will answer, many rows at a time; the others' answers are written over it.
void answer_as_claimed(BatchView const batch, std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
        batch.numbers[row] = batch.base + static_cast<std::uint32_t>(row);
        batch.mask[row] = 1;
    }
}

// After a row whose key was there already so many more are expected to be like it.
constexpr std::size_t kLikewise = 256;

template <class Reader, class Access>
ClaimCount claim_rows(IndexView const& view, BatchView const& rows, std::size_t begin,
                      std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    BatchView const batch = rows;
    ClaimCount count;
    answer_as_claimed(rows, begin, end);
    std::uint64_t others = 0;
    std::size_t looking = begin;  // rows below this one expect to meet their key
    auto const work = [&](std::size_t row, std::uint64_t hash, Walk walk) TH_INLINED {
        Claim const c = claim(index, hash, batch, row, walk);
        if (c.claimed == Claimed::Beyond) {
            return false;
        }
        batch.positions[row] = c.position;
        if (c.claimed == Claimed::Nothing || c.claimed == Claimed::Undecided) {
            batch.numbers[row] = c.number;
            batch.mask[row] = 0;
            ++others;
            count.undecided += c.claimed == Claimed::Undecided ? 1 : 0;
            looking = row + kLikewise;
        }
        count.from_erased += c.claimed == Claimed::Erased ? 1 : 0;
        return true;
    };
    auto const hash_at = [&](std::size_t row) { return index.hash(batch.keys, row); };
    // By reference: most rows never read it.
    auto const half_way = [&](std::size_t row, std::uint64_t const& hash) TH_INLINED {
        if constexpr (!Reader::kNarrow) {
            if (row < looking) {
                index.prefetch_candidate(hash, index.comparison(batch, row));
            }
        }
    };
    // Copies of `work`: through a reference to it GCC keeps all that it captures in memory, wherever there are exchanges.
    auto const step = [work](std::size_t row, std::uint64_t hash)
                          TH_INLINED { return work(row, hash, Walk::Home); };
    auto const finish = [work](std::size_t row, std::uint64_t hash)
                            TH_INLINED { work(row, hash, Walk::All); };
    pipeline<true>(index, begin, end, RowWork{hash_at, half_way, step, finish});
    count.claimed = end - begin - others;
    return count;
}

template <class Reader>
void join_late_rows(IndexView const& view, BatchView const& batch, std::size_t begin,
                    std::size_t end) {
    typename IndexOf<Reader, Shared>::type const index(view);
    for (std::size_t row = begin; row < end; ++row) {
        join_late(index, batch, row);
    }
}

template <class Reader, class Access>
void mark_rows(IndexView const& view, BatchView const& batch, std::size_t begin, std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t const ahead = row + kNear;
        if (ahead < end && batch.mask[ahead] != 0) {
            index.prefetch_ticket(batch.positions[ahead]);
        }
        if (batch.mask[row] != 0) {
            mark(index, batch, row);
        }
    }
}

/// Releases the slots of the rows in the range that `has_slot`; the mask tells which those were.
template <class Reader, class Access, class HasSlot>
inline ReleaseCount release_rows(IndexView const& view, BatchView const& batch, std::size_t begin,
                                 std::size_t end, HasSlot const& has_slot) {
    typename IndexOf<Reader, Access>::type const index(view);
    ReleaseCount count;
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t const ahead = row + kNear;
        if (ahead < end && batch.numbers[ahead] != kNoNumber) {
            index.prefetch_ticket(batch.positions[ahead]);
        }
        bool const released = has_slot(index, row);
        batch.mask[row] = released ? 1 : 0;
        if (released) {
            ++count.released;
            count.to_erased += release(index, batch.positions[row]) == Released::ToErased ? 1 : 0;
        }
    }
    return count;
}

template <class Reader, class Access>
ReleaseCount release_found(IndexView const& view, BatchView const& batch, std::size_t begin,
                           std::size_t end) {
    return release_rows<Reader, Access>(view, batch, begin, end, [&](auto const&, std::size_t row) {
        return batch.mask[row] != 0;
    });
}

template <class Reader, class Access>
ReleaseCount release_marked(IndexView const& view, BatchView const& batch, std::size_t begin,
                            std::size_t end) {
    return release_rows<Reader, Access>(
        view, batch, begin, end, [&](auto const& index, std::size_t row) {
            return batch.mask[row] != 0 && holds_claim(index, batch, row);
        });
}

template <class Reader, class Access>
ReleaseCount release_claims(IndexView const& view, BatchView const& batch, std::size_t begin,
                            std::size_t end) {
    return release_rows<Reader, Access>(
        view, batch, begin, end, [&](auto const& index, std::size_t row) {
            return batch.numbers[row] >= batch.base && holds_claim(index, batch, row);
        });
}

template <class Reader, class Access>
void place_live(IndexView const& view, LiveRange const& range) {
    typename IndexOf<Reader, Access>::type const index(view);
    // Numbers of one word of live bits at a time: gaps cost nothing and the pipeline stays full over dense tables.
    constexpr std::size_t kBatch = 4096;
    std::uint32_t numbers[kBatch];
    std::size_t count = 0;
    auto const hash_at = [&](std::size_t i) { return index.hash(view.key_buffer, numbers[i]); };
    auto const half_way = [](std::size_t, std::uint64_t) {};
    auto const step = [&](std::size_t i, std::uint64_t hash)
                          TH_INLINED { return place(index, hash, numbers[i], Walk::Home); };
    auto const finish = [&](std::size_t i, std::uint64_t hash) { place(index, hash, numbers[i]); };
    auto const flush = [&] {
        pipeline<true>(index, 0, count, RowWork{hash_at, half_way, step, finish});
        count = 0;
    };
    for (std::size_t number = range.begin; number < range.end;) {
        std::uint64_t bits = range.live[number / 64] >> (number % 64);
        std::size_t const stop = number / 64 * 64 + 64;
        for (; bits != 0 && number < range.end; ++number, bits >>= 1) {
            if ((bits & 1) != 0) {
                numbers[count++] = static_cast<std::uint32_t>(number);
            }
        }
        number = stop;
        if (count + 64 > kBatch) {
            flush();
        }
    }
    flush();
}

template <class Reader>
std::uint64_t settle_rows(IndexView const& view, BatchView const& batch, std::size_t begin,
                          std::size_t end) {
    // Claims are over and nobody publishes yet: everybody only reads the index.
    typename IndexOf<Reader, Sole>::type const index(view);
    std::uint64_t winners = 0;
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t const ahead = row + kNear;
        if (ahead < end && batch.numbers[ahead] >= batch.base) {
            index.prefetch_ticket(batch.positions[ahead]);
        }
        winners += settle(index, batch, row) ? 1 : 0;
    }
    return winners;
}

template <class Reader>
void publish_rows(IndexView const& view, BatchView const& batch, std::size_t begin, std::size_t end,
                  std::uint64_t rank, std::uint32_t const* free_top, std::uint64_t reusable) {
    // Each winner writes its own slot only: no two rows meet.
    typename IndexOf<Reader, Sole>::type const index(view);
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t const ahead = row + kNear;
        if (ahead < end && batch.mask[ahead] != 0) {
            index.prefetch_ticket(batch.positions[ahead]);
        }
        if (batch.mask[row] == 0) {
            continue;
        }
        std::uint32_t const number = rank < reusable
                                         ? free_top[-1 - static_cast<std::ptrdiff_t>(rank)]
                                         : batch.base + static_cast<std::uint32_t>(rank - reusable);
        publish(index, batch, row, number);
        ++rank;
    }
}

template <class Reader>
std::uint64_t probe_lines(IndexView const& view, BatchView const& batch, std::size_t begin,
                          std::size_t end, std::uint64_t& longest) {
    typename IndexOf<Reader, Sole>::type const index(view);
    std::uint64_t total = 0;
    for (std::size_t row = begin; row < end; ++row) {
        std::uint64_t const hash = index.hash(batch.keys, row);
        std::uint64_t lines = 1;
        if (!index.is_side(hash)) {
            Slot const slot = probe(index, hash, index.comparison(batch, row));
            lines += (slot.line - hash) & index.line_mask;
        }
        total += lines;
        longest = lines > longest ? lines : longest;
    }
    return total;
}

template <class Reader, class Access>
constexpr Kernels::Writers writers() noexcept {
    return {claim_rows<Reader, Access>,     mark_rows<Reader, Access>,
            release_found<Reader, Access>,  release_marked<Reader, Access>,
            release_claims<Reader, Access>, place_live<Reader, Access>};
}

template <class Reader>
Kernels const kTable{find_rows<Reader, false>,  find_rows<Reader, true>, writers<Reader, Sole>(),
                     writers<Reader, Shared>(), join_late_rows<Reader>,  settle_rows<Reader>,
                     publish_rows<Reader>,      probe_lines<Reader>};

}  // namespace
}  // namespace TH_KERNEL_NAMESPACE

/// The tables of this level; dispatch.cpp declares one such function per level.
Kernels const& TH_CONCAT(kernels_, TH_KERNEL_NAMESPACE)(std::uint32_t key_bytes,
                                                        std::uint32_t float_bytes);
Kernels const& TH_CONCAT(kernels_, TH_KERNEL_NAMESPACE)(std::uint32_t key_bytes,
                                                        std::uint32_t float_bytes) {
    bool const raw = float_bytes == 0;
    if (key_bytes <= 8) {
        return raw && key_bytes == 8   ? kTable<kernel::Narrow8>
               : raw && key_bytes == 4 ? kTable<kernel::Narrow4>
                                       : kTable<kernel::NarrowAny>;
    }
    return raw && key_bytes == 12   ? kTable<kernel::Wide12>
           : raw && key_bytes == 16 ? kTable<kernel::Wide16>
                                    : kTable<kernel::WideAny>;
}

}  // namespace tensorhash::cpu
