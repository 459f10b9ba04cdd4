// What instructions compute from registers alone. A register holds 64 bits; an instruction uses the
// lowest ones, as many as its type has.
#pragma once

#include <cstdint>

#include "ptx/program.hpp"

namespace th_ptx {

/// The lowest `bits` bits.
constexpr std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

/// The same as a signed number.
constexpr std::int64_t sign_extended(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? static_cast<std::int64_t>(value)
                      : static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

struct Operands {
    std::uint64_t a, b, c, e;
};

/// Throw PtxError for operations that PTX or this interpreter does not define.
std::uint64_t integer_result(Op op, Type type, Operands const& in);
std::uint64_t float_result(Op op, Type type, Operands const& in);
std::uint64_t converted(Instruction const& in, std::uint64_t value);
bool compared(Instruction const& in, std::uint64_t a, std::uint64_t b);
/// What an atomic operation stores.
std::uint64_t changed(Instruction const& in, std::uint64_t old, std::uint64_t b, std::uint64_t c);

}  // namespace th_ptx
