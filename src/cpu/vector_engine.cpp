// The loops of vector_engine.hpp, compiled once per instruction-set level like engine.cpp and under
// the same rule: only plain types of the standard library.
#include "cpu/vector_engine.hpp"

#include "cpu/level_name.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

using namespace step;

constexpr std::size_t kBlock = 64;

/// The number of columns: `Known` at compile time, or any number if that is 0.
template <std::uint32_t Known>
struct Width {
    static constexpr std::uint32_t of(std::uint32_t) { return Known; }
};
template <>
struct Width<0> {
    static constexpr std::uint32_t of(std::uint32_t columns) { return columns; }
};

std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// Keeps three blocks in flight: prefetches the slots of one, prefetches the rows that the slots of
/// another point at, and probes the third.
template <std::uint32_t Known>
void find_all(VectorView const& table, std::int32_t const* queries, std::size_t count,
              std::int32_t* out) {
    std::uint32_t const columns = Width<Known>::of(table.columns);
    std::uint32_t starts[3][kBlock];
    std::size_t const blocks = (count + kBlock - 1) / kBlock;
    for (std::size_t turn = 0; turn < blocks + 2; ++turn) {
        if (turn < blocks) {
            std::size_t const begin = turn * kBlock;
            for (std::size_t i = 0; i < smaller(kBlock, count - begin); ++i) {
                std::uint32_t const at =
                    murmur(queries + (begin + i) * columns, columns) & table.mask;
                starts[turn % 3][i] = at;
                prefetch(&table.slots[at]);
            }
        }
        if (turn >= 1 && turn - 1 < blocks) {
            std::size_t const begin = (turn - 1) * kBlock;
            for (std::size_t i = 0; i < smaller(kBlock, count - begin); ++i) {
                VectorSlot const slot = table.slots[starts[(turn - 1) % 3][i]];
                // An empty slot points at no row. Prefetching row 0 avoids a branch.
                std::uint32_t const row = slot == kEmptyVectorSlot ? 0 : vector_row(slot);
                prefetch(vector_row_at(table, row, columns));
            }
        }
        if (turn >= 2) {
            std::size_t const begin = (turn - 2) * kBlock;
            for (std::size_t i = 0; i < smaller(kBlock, count - begin); ++i) {
                out[begin + i] = static_cast<std::int32_t>(vector_find(
                    table, queries + (begin + i) * columns, columns, starts[(turn - 2) % 3][i]));
            }
        }
    }
}

void find(VectorView const& table, std::int32_t const* queries, std::size_t count,
          std::int32_t* out) {
    switch (table.columns) {
        case 3:
            find_all<3>(table, queries, count, out);
            break;
        case 4:
            find_all<4>(table, queries, count, out);
            break;
        default:
            find_all<0>(table, queries, count, out);
    }
}

template <std::uint32_t Known, class Access>
FlatCount claim_all(VectorView const& table, std::size_t begin, std::size_t end) {
    constexpr std::size_t kAhead = 32;
    std::uint32_t const columns = Width<Known>::of(table.columns);
    FlatCount total;
    for (std::size_t row = begin; row < end; ++row) {
        if (row + kAhead < end) {
            auto const ahead = static_cast<std::uint32_t>(row + kAhead);
            prefetch_for_write(
                &table.slots[murmur(vector_row_at(table, ahead, columns), columns) & table.mask]);
        }
        VectorClaim const got =
            vector_claim<Access>(table, static_cast<std::uint32_t>(row), columns);
        if (got.full) {
            total.full = true;
            return total;
        }
        total.claimed += got.claimed ? 1 : 0;
        total.longest = got.steps > total.longest ? got.steps : total.longest;
    }
    return total;
}

template <class Access>
FlatCount claim(VectorView const& table, std::size_t begin, std::size_t end) {
    return table.columns == 4   ? claim_all<4, Access>(table, begin, end)
           : table.columns == 3 ? claim_all<3, Access>(table, begin, end)
                                : claim_all<0, Access>(table, begin, end);
}

VectorLoops const kTable{find, claim<Exclusive>, claim<Shared>};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; dispatch.cpp declares one such function per level.
VectorLoops const& TH_LEVEL_NAME(vector_loops_)();
VectorLoops const& TH_LEVEL_NAME(vector_loops_)() { return kTable; }

}  // namespace tensorhash::cpu
