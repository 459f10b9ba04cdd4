// Bodies that join the rows of an accumulate with what is stored. Where the order of joins does not
// show, atomic operations do it. Elsewhere rows are sorted by entry, and one thread per element
// joins the rows of an entry in row order, bit for bit as the CPU does.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "device/counters.hpp"
#include "device/grid.hpp"
#include "tensor/joins.hpp"
#include "tensor/stored.hpp"
#include "tensorhash/step/bucket.hpp"

namespace tensorhash::device {

/// What both kinds of bodies take. Rows with a set mask are already stored.
template <class Stored>
struct Joined {
    Stored* stored;              // [capacity, elements]
    Stored const* values;        // [rows, elements]
    std::uint32_t const* order;  // row i has row order[i] of the values; null: row i
    unsigned char const* mask;   // [rows]
    std::uint32_t elements;      // per row

    TH_STEP Stored value(std::uint64_t row, std::uint32_t element) const {
        std::uint64_t const source = order != nullptr ? order[row] : row;
        return values[source * elements + element];
    }
};

/// Integers of 4 or 8 bytes, in any order.
template <class T, class Op>
struct JoinAtomically {
    using Shared = NoShared;
    Joined<T> joined;
    std::uint32_t const* indices;  // [rows]
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows * joined.elements, [&](std::uint64_t i) {
            std::uint64_t const row = i / joined.elements;
            auto const element = static_cast<std::uint32_t>(i % joined.elements);
            if (joined.mask[row] != 0 || indices[row] == step::kNotFound) {
                return;
            }
            T* const at = joined.stored + std::uint64_t{indices[row]} * joined.elements + element;
            T const value = joined.value(row, element);
            if constexpr (std::is_same_v<Op, JoinSum>) {
                using U = std::make_unsigned_t<T>;
                fetch_add(reinterpret_cast<U*>(at), static_cast<U>(value));
            } else if constexpr (std::is_same_v<Op, JoinMin>) {
                fetch_min(at, value);
            } else {
                fetch_max(at, value);
            }
        });
    }
};

/// A sum or product as x86 gives it. Machines agree on numbers, but not on the bits of a NaN.
template <class Op, class Float>
TH_STEP Float join_like_x86(Float stored, Float row) {
    using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits kQuiet = Bits{1} << (sizeof(Float) == 4 ? 22 : 51);
    constexpr Bits kNan = ~(kQuiet - 1);  // the sign, the exponent and the quiet bit
    if (stored != stored) {
        return std::bit_cast<Float>(std::bit_cast<Bits>(stored) | kQuiet);
    }
    if (row != row) {
        return std::bit_cast<Float>(std::bit_cast<Bits>(row) | kQuiet);
    }
    Float const joined = Op::join(stored, row);
    return joined != joined ? std::bit_cast<Float>(kNan) : joined;
}

/// Any type, in row order. `indices` is sorted; `sorted_rows` has the row of each. One thread per
/// element of an entry: an entry that all rows have is a sequential loop.
template <class Type, class Op>
struct JoinInOrder {
    using Shared = NoShared;
    using Stored = typename Type::Stored;
    Joined<Stored> joined;
    std::uint32_t const* indices;      // [rows], ascending
    std::uint32_t const* sorted_rows;  // [rows], ascending within an entry
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows * joined.elements, [&](std::uint64_t i) {
            std::uint64_t const first = i / joined.elements;
            auto const element = static_cast<std::uint32_t>(i % joined.elements);
            std::uint32_t const index = indices[first];
            if (index == step::kNotFound) {
                return;
            }
            if (first > 0 && indices[first - 1] == index) {
                return;  // the entry belongs to an earlier thread
            }
            Stored* const at = joined.stored + std::uint64_t{index} * joined.elements + element;
            Stored sum = *at;
            for (std::uint64_t j = first; j < rows && indices[j] == index; ++j) {
                std::uint32_t const row = sorted_rows[j];
                if (joined.mask[row] == 0) {
                    sum = join(sum, joined.value(row, element));
                }
            }
            *at = sum;
        });
    }

private:
    static TH_STEP Stored join(Stored stored, Stored row) {
        using Computed = typename Type::Computed;
        constexpr bool kComputes = std::is_same_v<Op, JoinSum> || std::is_same_v<Op, JoinProd>;
        if constexpr (std::is_floating_point_v<Computed> && kComputes) {
            return Type::store(join_like_x86<Op>(Type::load(stored), Type::load(row)));
        } else {
            return Type::store(Op::join(Type::load(stored), Type::load(row)));
        }
    }
};

}  // namespace tensorhash::device
