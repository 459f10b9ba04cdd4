// The loops of engine.hpp. Compiled once per instruction-set level, with TH_ISA naming the level; nothing of the
// standard library beyond plain types is used here, lest the linker share code between levels.
#include "cpu/engine.hpp"

#include "tensorhash/kernel/erase.hpp"
#include "tensorhash/kernel/find.hpp"
#include "tensorhash/kernel/insert.hpp"

#define TH_CONCAT_(a, b) a##b
#define TH_CONCAT(a, b) TH_CONCAT_(a, b)

namespace tensorhash::cpu {
inline namespace TH_KERNEL_NAMESPACE {
namespace {

using namespace kernel;

// Rows in flight: enough to hide memory behind hashing and probing, few enough for the line-fill buffers and L1.
constexpr std::size_t kAhead = 32;
// Wide keys need a second line, the key's own; it is asked for half way.
constexpr std::size_t kKeyAhead = 16;

/// Runs `step(row, hash)` over the rows, each row's line asked for kAhead rows before. `hash_at(row)` hashes a row.
template <bool ForWrite, class Index, class HashAt, class KeyAhead, class Step>
inline __attribute__((always_inline)) void pipeline(Index const& index, std::size_t begin,
                                                    std::size_t end, HashAt const& hash_at,
                                                    KeyAhead const& key_ahead, Step const& step) {
    std::uint64_t hashes[kAhead];
    auto const start = [&](std::size_t row) {
        std::uint64_t const hash = hash_at(row);
        hashes[row % kAhead] = hash;
        void const* line = &index.lines[hash & index.line_mask];
        ForWrite ? prefetch_for_write(line) : prefetch(line);
    };
    std::size_t const primed = end - begin < kAhead ? end : begin + kAhead;
    for (std::size_t row = begin; row < primed; ++row) {
        start(row);
    }
    std::size_t row = begin;
    if (end - begin > kAhead) {
        for (; row < end - kAhead; ++row) {
            key_ahead(row + kKeyAhead, hashes[(row + kKeyAhead) % kAhead]);
            std::uint64_t const hash = hashes[row % kAhead];
            start(row + kAhead);
            step(row, hash);
        }
    }
    for (; row < end; ++row) {
        if (row + kKeyAhead < end) {
            key_ahead(row + kKeyAhead, hashes[(row + kKeyAhead) % kAhead]);
        }
        step(row, hashes[row % kAhead]);
    }
}

/// The pipeline over a batch's rows.
template <bool ForWrite, class Index, class Step>
inline __attribute__((always_inline)) void for_rows(Index const& index, BatchView const& batch,
                                                    std::size_t begin, std::size_t end,
                                                    Step const& step) {
    auto const key_ahead = [&](std::size_t row, std::uint64_t hash) {
        if constexpr (requires { index.prefetch_candidate(hash, index.comparison(batch, row)); }) {
            index.prefetch_candidate(hash, index.comparison(batch, row));
        }
    };
    pipeline<ForWrite>(
        index, begin, end, [&](std::size_t row) { return index.hash(batch.keys, row); }, key_ahead,
        step);
}

template <class Reader>
void find_rows(IndexView const& view, BatchView const& batch, std::size_t begin, std::size_t end) {
    typename IndexOf<Reader, Sole>::type const index(view);
    for_rows<false>(index, batch, begin, end, [&](std::size_t row, std::uint64_t hash) {
        std::uint32_t const number = find(index, hash, batch, row);
        batch.numbers[row] = number;
        batch.mask[row] = number != kNoNumber ? 1 : 0;
    });
}

template <class Reader, class Access>
ClaimCount claim_rows(IndexView const& view, BatchView const& batch, std::size_t begin,
                      std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    ClaimCount count;
    for_rows<true>(index, batch, begin, end, [&](std::size_t row, std::uint64_t hash) {
        Claim const c = claim(index, hash, batch, row);
        batch.positions[row] = c.position;
        batch.numbers[row] = c.number;
        batch.mask[row] = c.claimed != Claimed::Nothing ? 1 : 0;
        count.claimed += c.claimed != Claimed::Nothing ? 1 : 0;
        count.from_erased += c.claimed == Claimed::Erased ? 1 : 0;
    });
    return count;
}

template <class Reader, class Access>
void mark_rows(IndexView const& view, BatchView const& batch, std::size_t begin, std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    for_rows<true>(index, batch, begin, end, [&](std::size_t row, std::uint64_t hash) {
        mark_for_erase(index, hash, batch, row);
    });
}

/// Releases the slots of the rows in the range that `wants`; the mask tells which those were.
template <class Index, class Wants>
inline ReleaseCount release_rows(Index const& index, BatchView const& batch, std::size_t begin,
                                 std::size_t end, Wants const& wants) {
    ReleaseCount count;
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t const ahead = row + kAhead;
        if (ahead < end && batch.numbers[ahead] != kNoNumber) {
            index.prefetch_ticket(batch.positions[ahead]);
        }
        bool const released = wants(row) && holds_claim(index, batch, row);
        batch.mask[row] = released ? 1 : 0;
        if (released) {
            ++count.released;
            count.to_erased += release(index, batch.positions[row]) == Released::ToErased ? 1 : 0;
        }
    }
    return count;
}

template <class Reader, class Access>
ReleaseCount release_marked(IndexView const& view, BatchView const& batch, std::size_t begin,
                            std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    return release_rows(index, batch, begin, end,
                        [&](std::size_t row) { return batch.numbers[row] != kNoNumber; });
}

template <class Reader, class Access>
ReleaseCount release_claims(IndexView const& view, BatchView const& batch, std::size_t begin,
                            std::size_t end) {
    typename IndexOf<Reader, Access>::type const index(view);
    return release_rows(index, batch, begin, end,
                        [&](std::size_t row) { return batch.numbers[row] >= batch.base; });
}

template <class Reader, class Access>
void place_live(IndexView const& view, LiveRange const& range) {
    typename IndexOf<Reader, Access>::type const index(view);
    // Numbers of one word of live bits at a time: gaps cost nothing and the pipeline stays full over dense tables.
    constexpr std::size_t kBatch = 4096;
    std::uint32_t numbers[kBatch];
    std::size_t count = 0;
    auto const flush = [&] {
        pipeline<true>(
            index, 0, count, [&](std::size_t i) { return index.hash(view.key_buffer, numbers[i]); },
            [](std::size_t, std::uint64_t) {},
            [&](std::size_t i, std::uint64_t hash) { place(index, hash, numbers[i]); });
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
        std::size_t const ahead = row + kAhead;
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
        std::size_t const ahead = row + kAhead;
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
            lines += ((slot.position >> 3) - hash) & index.line_mask;
        }
        total += lines;
        longest = lines > longest ? lines : longest;
    }
    return total;
}

template <class Reader, class Access>
constexpr Kernels::Writers writers() {
    return {claim_rows<Reader, Access>, mark_rows<Reader, Access>, release_marked<Reader, Access>,
            release_claims<Reader, Access>, place_live<Reader, Access>};
}

template <class Reader>
Kernels const table{find_rows<Reader>,   writers<Reader, Sole>(), writers<Reader, Shared>(),
                    settle_rows<Reader>, publish_rows<Reader>,    probe_lines<Reader>};

}  // namespace
}  // namespace TH_KERNEL_NAMESPACE

/// The tables of this level; dispatch.cpp declares one such function per level.
Kernels const& TH_CONCAT(kernels_, TH_KERNEL_NAMESPACE)(std::uint32_t key_bytes,
                                                        std::uint32_t float_bytes);
Kernels const& TH_CONCAT(kernels_, TH_KERNEL_NAMESPACE)(std::uint32_t key_bytes,
                                                        std::uint32_t float_bytes) {
    bool const raw = float_bytes == 0;
    if (key_bytes <= 8) {
        return raw && key_bytes == 8   ? table<kernel::Narrow8>
               : raw && key_bytes == 4 ? table<kernel::Narrow4>
                                       : table<kernel::NarrowAny>;
    }
    return raw && key_bytes == 12   ? table<kernel::Wide12>
           : raw && key_bytes == 16 ? table<kernel::Wide16>
                                    : table<kernel::WideAny>;
}

}  // namespace tensorhash::cpu
