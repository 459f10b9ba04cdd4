// PTX arithmetic on integers and floats. A function has over 50 lines: one case per instruction.
#include "ptx/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace th_ptx {
namespace {

std::uint64_t as_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::uint64_t product_high(bool is_signed, unsigned n, Operands const& in) {
    __extension__ using Wide = unsigned __int128;
    __extension__ using SignedWide = __int128;
    auto const extend = [&](std::uint64_t value) {
        return is_signed ? static_cast<Wide>(static_cast<SignedWide>(sign_extended(value, n)))
                         : static_cast<Wide>(low_bits(value, n));
    };
    return low_bits(static_cast<std::uint64_t>(extend(in.a) * extend(in.b) >> n), n);
}

std::uint64_t product_wide(bool is_signed, unsigned n, Operands const& in) {
    return is_signed ? as_bits(sign_extended(in.a, n) * sign_extended(in.b, n))
                     : low_bits(in.a, n) * low_bits(in.b, n);
}

/// A quotient, or a remainder. The smallest number divided by -1 overflows: C++ leaves it
/// undefined.
std::uint64_t divided(bool quotient, bool is_signed, unsigned n, Operands const& in) {
    std::uint64_t const b = low_bits(in.b, n);
    if (b == 0) throw PtxError("division by zero");
    if (!is_signed) return quotient ? low_bits(in.a, n) / b : low_bits(in.a, n) % b;
    std::int64_t const divisor = sign_extended(in.b, n);
    if (divisor == -1) return quotient ? low_bits(0 - in.a, n) : 0;
    std::int64_t const a = sign_extended(in.a, n);
    return low_bits(as_bits(quotient ? a / divisor : a % divisor), n);
}

std::uint64_t shifted_right(bool is_signed, unsigned n, Operands const& in) {
    std::uint64_t const by = low_bits(in.b, 32);
    if (is_signed) {
        std::uint64_t const most = std::min<std::uint64_t>(by, n - 1);
        return low_bits(as_bits(sign_extended(in.a, n) >> most), n);
    }
    return by >= n ? 0 : low_bits(in.a, n) >> by;
}

/// 32 bits of the 64-bit word b:a, from bit `first` on.
std::uint64_t funnel(std::uint64_t a, std::uint64_t b, std::uint64_t first) {
    std::uint64_t const word = low_bits(b, 32) << 32 | low_bits(a, 32);
    return low_bits(word >> first, 32);
}

std::uint64_t reversed(std::uint64_t value, unsigned n) {
    std::uint64_t out = 0;
    for (unsigned i = 0; i < n; ++i) out |= (value >> i & 1) << (n - 1 - i);
    return out;
}

std::uint64_t highest_bit(bool as_shift, bool is_signed, unsigned n, std::uint64_t value) {
    bool const negative = is_signed && sign_extended(value, n) < 0;
    std::uint64_t const bits = low_bits(negative ? ~value : value, n);
    if (bits == 0) return 0xffffffffu;
    unsigned const at = 63 - static_cast<unsigned>(std::countl_zero(bits));
    return as_shift ? n - 1 - at : at;
}

std::uint64_t extracted(bool is_signed, unsigned n, Operands const& in) {
    if (is_signed) throw PtxError("bfe of signed types is not supported");
    std::uint64_t const first = low_bits(in.b, 8);
    std::uint64_t const count = low_bits(in.c, 8);
    if (first >= n) return 0;
    return low_bits(low_bits(in.a, n) >> first, static_cast<unsigned>(count));
}

std::uint64_t inserted(unsigned n, Operands const& in) {
    std::uint64_t const first = low_bits(in.c, 8);
    std::uint64_t const count = low_bits(in.e, 8);
    if (first >= n || count == 0) return low_bits(in.b, n);
    std::uint64_t const mask = low_bits(~std::uint64_t{0}, static_cast<unsigned>(count)) << first;
    return low_bits((in.b & ~mask) | (in.a << first & mask), n);
}

/// Each of four nibbles of c picks a byte of b:a; its top bit asks for the byte's sign instead.
std::uint64_t permuted(Operands const& in) {
    std::uint64_t const bytes = low_bits(in.b, 32) << 32 | low_bits(in.a, 32);
    std::uint64_t out = 0;
    for (unsigned i = 0; i < 4; ++i) {
        std::uint64_t const pick = in.c >> (4 * i) & 15;
        std::uint64_t const byte = bytes >> (8 * (pick & 7)) & 0xff;
        std::uint64_t const sign = (byte & 0x80) != 0 ? 0xff : 0;
        out |= ((pick & 8) == 0 ? byte : sign) << (8 * i);
    }
    return out;
}

template <class T>
T to_float(std::uint64_t bits) {
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
    } else {
        return std::bit_cast<T>(bits);
    }
}

template <class T>
std::uint64_t from_float(T value) {
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<std::uint32_t>(value);
    } else {
        return std::bit_cast<std::uint64_t>(value);
    }
}

/// The smaller one; a number rather than NaN, and -0 is smaller than +0.
template <class T>
T smaller(T a, T b) {
    if (a == b) return std::signbit(a) ? a : b;
    return std::fmin(a, b);
}

template <class T>
std::uint64_t float_of(Op op, Operands const& in) {
    T const a = to_float<T>(in.a);
    T const b = to_float<T>(in.b);
    switch (op) {
        case Op::Add:
            return from_float(a + b);
        case Op::Sub:
            return from_float(a - b);
        case Op::Mul:
            return from_float(a * b);
        case Op::Div:
            return from_float(a / b);
        case Op::Fma:
            return from_float(std::fma(a, b, to_float<T>(in.c)));
        case Op::Sqrt:
            return from_float(std::sqrt(a));
        case Op::Min:
            return from_float(smaller(a, b));
        case Op::Max:
            return from_float(-smaller(-a, -b));
        case Op::Neg:
            return from_float(-a);
        case Op::Abs:
            return from_float(std::fabs(a));
        default:
            throw PtxError("this operation is not supported for floats");
    }
}

template <class T>
bool compare_values(Compare compare, T a, T b) {
    switch (compare) {
        case Compare::Eq:
            return a == b;
        case Compare::Ne:
            return a != b;
        case Compare::Lt:
            return a < b;
        case Compare::Le:
            return a <= b;
        case Compare::Gt:
            return a > b;
        case Compare::Ge:
            return a >= b;
        default:
            throw PtxError("this comparison is not supported for integers");
    }
}

template <class T>
bool compare_floats(Instruction const& in, T a, T b) {
    bool const some_nan = std::isnan(a) || std::isnan(b);
    if (in.compare == Compare::SomeNan) return some_nan;
    if (in.compare == Compare::BothNumbers) return !some_nan;
    return some_nan ? in.unordered : compare_values(in.compare, a, b);
}

double rounded(Round round, double value) {
    switch (round) {
        case Round::Nearest:
            return std::nearbyint(value);
        case Round::Zero:
            return std::trunc(value);
        case Round::Down:
            return std::floor(value);
        case Round::Up:
            return std::ceil(value);
    }
    return value;
}

/// Clamps to the type's range; NaN becomes 0.
std::uint64_t float_to_integer(Instruction const& in, double value) {
    unsigned const n = in.type.bits;
    double const whole = std::isnan(value) ? 0 : rounded(in.round, value);
    if (in.type.kind == Kind::Signed) {
        double const limit = std::ldexp(1.0, static_cast<int>(n) - 1);
        std::int64_t const most = sign_extended(low_bits(~std::uint64_t{0}, n - 1), 64);
        if (whole >= limit) return low_bits(as_bits(most), n);
        return low_bits(as_bits(whole <= -limit ? -most - 1 : static_cast<std::int64_t>(whole)), n);
    }
    if (whole <= 0) return 0;
    bool const too_large = whole >= std::ldexp(1.0, static_cast<int>(n));
    return too_large ? low_bits(~std::uint64_t{0}, n) : static_cast<std::uint64_t>(whole);
}

template <class T>
std::uint64_t integer_to_float(Type from, std::uint64_t value) {
    return from.kind == Kind::Signed ? from_float(static_cast<T>(sign_extended(value, from.bits)))
                                     : from_float(static_cast<T>(low_bits(value, from.bits)));
}

void require_known_float(Type type) {
    if (type.kind == Kind::Float && type.bits != 32 && type.bits != 64) {
        throw PtxError("expected f32 or f64, got f" + std::to_string(type.bits));
    }
}

}  // namespace

std::uint64_t integer_result(Op op, Type type, Operands const& in) {
    unsigned const n = type.bits;
    bool const is_signed = type.kind == Kind::Signed;
    std::uint64_t const a = low_bits(in.a, n);
    std::uint64_t const b = low_bits(in.b, n);
    std::int64_t const signed_a = sign_extended(in.a, n);
    std::int64_t const signed_b = sign_extended(in.b, n);
    switch (op) {
        case Op::Add:
            return low_bits(a + b, n);
        case Op::Sub:
            return low_bits(a - b, n);
        case Op::Mul:
            return low_bits(a * b, n);
        case Op::MulHigh:
            return product_high(is_signed, n, in);
        case Op::MulWide:
            return low_bits(product_wide(is_signed, n, in), 2 * n);
        case Op::Mad:
            return low_bits(a * b + in.c, n);
        case Op::MadWide:
            return low_bits(product_wide(is_signed, n, in) + in.c, 2 * n);
        case Op::Div:
        case Op::Rem:
            return divided(op == Op::Div, is_signed, n, in);
        case Op::Min:
            return is_signed ? low_bits(as_bits(std::min(signed_a, signed_b)), n) : std::min(a, b);
        case Op::Max:
            return is_signed ? low_bits(as_bits(std::max(signed_a, signed_b)), n) : std::max(a, b);
        case Op::Neg:
            return low_bits(0 - a, n);
        case Op::Abs:
            return signed_a < 0 ? low_bits(0 - a, n) : a;
        case Op::And:
            return a & b;
        case Op::Or:
            return a | b;
        case Op::Xor:
            return a ^ b;
        case Op::Not:
            return low_bits(~a, n);
        case Op::ShiftLeft:
            return low_bits(in.b, 32) >= n ? 0 : low_bits(a << low_bits(in.b, 32), n);
        case Op::ShiftRight:
            return shifted_right(is_signed, n, in);
        case Op::FunnelLeft:
            return funnel(in.a, in.b, 32 - (in.c & 31));
        case Op::FunnelRight:
            return funnel(in.a, in.b, in.c & 31);
        case Op::PopCount:
            return static_cast<std::uint64_t>(std::popcount(a));
        case Op::LeadingZeros:
            return static_cast<std::uint64_t>(std::countl_zero(a)) - (64 - n);
        case Op::Reverse:
            return reversed(a, n);
        case Op::HighestBit:
        case Op::HighestBitShift:
            return highest_bit(op == Op::HighestBitShift, is_signed, n, in.a);
        case Op::ExtractBits:
            return extracted(is_signed, n, in);
        case Op::InsertBits:
            return inserted(n, in);
        case Op::Permute:
            return permuted(in);
        default:
            throw PtxError("this operation is not supported for integers");
    }
}

std::uint64_t float_result(Op op, Type type, Operands const& in) {
    require_known_float(type);
    return type.bits == 32 ? float_of<float>(op, in) : float_of<double>(op, in);
}

std::uint64_t converted(Instruction const& in, std::uint64_t value) {
    require_known_float(in.type);
    require_known_float(in.from);
    bool const to_floats = in.type.kind == Kind::Float;
    if (in.from.kind == Kind::Float) {
        double const real = in.from.bits == 32 ? to_float<float>(value) : to_float<double>(value);
        if (!to_floats) return float_to_integer(in, real);
        if (in.type.bits == in.from.bits) {  // to a whole number
            double const whole = rounded(in.round, real);
            return in.type.bits == 32 ? from_float(static_cast<float>(whole)) : from_float(whole);
        }
        return in.type.bits == 32 ? from_float(static_cast<float>(real)) : from_float(real);
    }
    if (to_floats) {
        return in.type.bits == 32 ? integer_to_float<float>(in.from, value)
                                  : integer_to_float<double>(in.from, value);
    }
    bool const is_signed = in.from.kind == Kind::Signed;
    return low_bits(
        is_signed ? as_bits(sign_extended(value, in.from.bits)) : low_bits(value, in.from.bits),
        in.type.bits);
}

bool compared(Instruction const& in, std::uint64_t a, std::uint64_t b) {
    require_known_float(in.type);
    unsigned const n = in.type.bits;
    if (in.type.kind == Kind::Float) {
        return n == 32 ? compare_floats(in, to_float<float>(a), to_float<float>(b))
                       : compare_floats(in, to_float<double>(a), to_float<double>(b));
    }
    return in.type.kind == Kind::Signed
               ? compare_values(in.compare, sign_extended(a, n), sign_extended(b, n))
               : compare_values(in.compare, low_bits(a, n), low_bits(b, n));
}

std::uint64_t changed(Instruction const& in, std::uint64_t old, std::uint64_t b, std::uint64_t c) {
    unsigned const n = in.type.bits;
    switch (in.change) {
        case Change::CompareAndSwap:
            return low_bits(low_bits(old, n) == low_bits(b, n) ? c : old, n);
        case Change::Exchange:
            return low_bits(b, n);
        case Change::Add:
            return integer_result(Op::Add, in.type, {old, b, 0, 0});
        case Change::And:
            return integer_result(Op::And, in.type, {old, b, 0, 0});
        case Change::Or:
            return integer_result(Op::Or, in.type, {old, b, 0, 0});
        case Change::Xor:
            return integer_result(Op::Xor, in.type, {old, b, 0, 0});
        case Change::Min:
            return integer_result(Op::Min, in.type, {old, b, 0, 0});
        case Change::Max:
            return integer_result(Op::Max, in.type, {old, b, 0, 0});
    }
    return old;
}

}  // namespace th_ptx
