// The loops of flat_engine.hpp. Compiled once per instruction-set level like engine.cpp, under the same rule: nothing
// of the standard library beyond plain types.
#include "cpu/flat_engine.hpp"

#define TH_CONCAT_(a, b) a##b
#define TH_CONCAT(a, b) TH_CONCAT_(a, b)

namespace tensorhash::cpu {
inline namespace TH_KERNEL_NAMESPACE {
namespace {

using namespace kernel;

// Rows between asking for a slot's line and reading it; two blocks of keys stay in L1.
constexpr std::size_t kBlock = 64;

std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// Keys of `count` rows; the number of those out of range.
template <std::uint32_t Columns, class Int>
std::size_t pack_block(Int const* rows, std::size_t count, std::uint64_t* keys) {
    std::size_t outside = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Int const* const row = rows + i * Columns;
        std::uint64_t const key = packed_or_empty<Int>(
            row[0], Columns > 1 ? row[1] : 0, Columns > 2 ? row[2] : 0, Columns > 3 ? row[3] : 0);
        keys[i] = key;
        outside += key == kEmptyKey ? 1 : 0;
    }
    return outside;
}

template <class Int>
std::size_t pack_columns(FlatRows const& rows, std::size_t begin, std::size_t count,
                         std::uint64_t* keys) {
    auto const* const first = static_cast<Int const*>(rows.data) + begin * rows.columns;
    switch (rows.columns) {
        case 1:
            return pack_block<1>(first, count, keys);
        case 2:
            return pack_block<2>(first, count, keys);
        case 3:
            return pack_block<3>(first, count, keys);
        default:
            return pack_block<4>(first, count, keys);
    }
}

std::size_t pack(FlatRows const& rows, std::size_t begin, std::size_t end, std::uint64_t* keys) {
    return rows.wide ? pack_columns<std::int64_t>(rows, begin, end - begin, keys)
                     : pack_columns<std::int32_t>(rows, begin, end - begin, keys);
}

/// Two blocks under way: for each row that is probed, the line of one in the next block is asked for, so that memory
/// and probing keep pace. `keys_of(begin, count, keys)` fills a block of keys.
template <class KeysOf, class Probe>
inline __attribute__((always_inline)) void find_blocks(FlatView const& table, std::size_t count,
                                                       std::int32_t* out, KeysOf const& keys_of,
                                                       Probe const& probe) {
    std::uint64_t keys[2][kBlock];
    std::uint32_t starts[2][kBlock];
    auto const begin_block = [&](std::size_t begin, unsigned half) {
        std::size_t const size = smaller(kBlock, count - begin);
        keys_of(begin, size, keys[half]);
        for (std::size_t i = 0; i < size; ++i) {
            starts[half][i] = Splitmix64Hash::hash(keys[half][i], table.mask);
        }
        return size;
    };
    std::size_t size = count == 0 ? 0 : begin_block(0, 0);
    for (std::size_t i = 0; i < size; ++i) {
        prefetch(&table.slots[starts[0][i]]);
    }
    unsigned half = 0;
    for (std::size_t begin = 0; begin < count; begin += kBlock, half ^= 1) {
        std::size_t const next = begin + kBlock < count ? begin_block(begin + kBlock, half ^ 1) : 0;
        for (std::size_t i = 0; i < size; ++i) {
            if (i < next) {
                prefetch(&table.slots[starts[half ^ 1][i]]);
            }
            out[begin + i] = static_cast<std::int32_t>(probe(keys[half][i], starts[half][i]));
        }
        size = next;
    }
}

template <class KeysOf>
inline __attribute__((always_inline)) void find_all(FlatView const& table, FlatWindow window,
                                                    std::size_t count, std::int32_t* out,
                                                    KeysOf const& keys_of) {
    if (table.double_hash) {
        find_blocks(table, count, out, keys_of,
                    [&](std::uint64_t key, std::uint32_t at) { return flat_find(table, key, at); });
    } else if (window == FlatWindow::Line) {
        find_blocks(table, count, out, keys_of, [&](std::uint64_t key, std::uint32_t at) {
            return flat_find_lines<1>(table, key, at);
        });
    } else {
        find_blocks(table, count, out, keys_of, [&](std::uint64_t key, std::uint32_t at) {
            return flat_find_lines<4>(table, key, at);
        });
    }
}

void find_keys(FlatView const& table, FlatWindow window, std::uint64_t const* keys,
               std::size_t count, std::int32_t* out) {
    find_all(table, window, count, out,
             [&](std::size_t begin, std::size_t size, std::uint64_t* block) {
                 for (std::size_t i = 0; i < size; ++i) {
                     block[i] = keys[begin + i];
                 }
             });
}

void find_rows(FlatView const& table, FlatWindow window, FlatRows const& rows, std::size_t begin,
               std::size_t end, std::int32_t* out) {
    if (rows.columns == 4 && !rows.wide) {  // the usual rows get a loop of their own
        auto const* const first = static_cast<std::int32_t const*>(rows.data) + begin * 4;
        find_all(table, window, end - begin, out,
                 [&](std::size_t from, std::size_t size, std::uint64_t* block) {
                     pack_block<4>(first + from * 4, size, block);
                 });
        return;
    }
    find_all(table, window, end - begin, out,
             [&](std::size_t from, std::size_t size, std::uint64_t* block) {
                 pack(rows, begin + from, begin + from + size, block);
             });
}

template <class Access>
FlatCount claim(FlatView const& table, std::uint64_t const* keys, std::size_t count,
                std::uint32_t first_row, std::uint32_t* positions) {
    constexpr std::size_t kAhead = 32;
    auto const ask_for = [&](std::size_t i) {
        prefetch_for_write(&table.slots[Splitmix64Hash::hash(keys[i], table.mask)]);
    };
    for (std::size_t i = 0; i < smaller(kAhead, count); ++i) {
        ask_for(i);
    }
    FlatCount total;
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            ask_for(i + kAhead);
        }
        FlatClaim const got =
            flat_claim<Access>(table, keys[i], first_row + static_cast<std::uint32_t>(i));
        if (got.full) {
            total.full = true;
            return total;
        }
        total.claimed += got.claimed ? 1 : 0;
        total.longest = got.steps > total.longest ? got.steps : total.longest;
        if (positions != nullptr) {
            positions[i] = got.position;
        }
    }
    return total;
}

FlatKernels const table{pack, find_keys, find_rows, claim<Sole>, claim<Shared>};

}  // namespace
}  // namespace TH_KERNEL_NAMESPACE

/// The loops of this level; dispatch.cpp declares one such function per level.
FlatKernels const& TH_CONCAT(flat_kernels_, TH_KERNEL_NAMESPACE)();
FlatKernels const& TH_CONCAT(flat_kernels_, TH_KERNEL_NAMESPACE)() { return table; }

}  // namespace tensorhash::cpu
