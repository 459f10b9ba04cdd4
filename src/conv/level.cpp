// The loops of one instruction-set level. Compiled once per level, with TH_ISA as its name.
#include <cstddef>
#include <cstdint>

#include "conv/loops.hpp"
#include "conv/outer_loop.hpp"
#include "conv/tile_loop.hpp"
#include "conv/vectors.hpp"
#include "cpu/level_name.hpp"
#include "tensor/half.hpp"

namespace tensorhash::conv {
inline namespace TH_STEP_NAMESPACE {
namespace {

/// Calls wide(i) for each whole step of `Step` elements and one(i) for the rest.
template <std::size_t Step, class Wide, class One>
void in_steps(std::size_t count, Wide wide, One one) {
    std::size_t i = 0;
    for (; i + Step <= count; i += Step) wide(i);
    for (; i < count; ++i) one(i);
}

void widen_half(std::uint16_t const* from, float* to, std::size_t count) {
    auto const one = [&](std::size_t i) { to[i] = half_to_float(from[i]); };
#if defined(__F16C__)
    in_steps<8>(
        count,
        [&](std::size_t i) {
            auto const* const p = reinterpret_cast<__m128i const*>(from + i);
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(p)));
        },
        one);
#else
    in_steps<1>(count, one, one);
#endif
}

void narrow_half(float const* from, std::uint16_t* to, std::size_t count) {
    auto const one = [&](std::size_t i) { to[i] = float_to_half(from[i]); };
#if defined(__F16C__)
    in_steps<8>(
        count,
        [&](std::size_t i) {
            __m128i const halves =
                _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
        },
        one);
#else
    in_steps<1>(count, one, one);
#endif
}

void widen_bfloat16(std::uint16_t const* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = bfloat16_to_float(from[i]);
}

void narrow_bfloat16(float const* from, std::uint16_t* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = float_to_bfloat16(from[i]);
}

template <class T>
constexpr Loops<T> loops_of() {
    return {kLanes<T>, kBlockColumns<T>, add_tile<T>, add_outer<T>, outer_rows<T>};
}

}  // namespace
}  // namespace TH_STEP_NAMESPACE

#define TH_TEXT_(x) #x
#define TH_TEXT(x) TH_TEXT_(x)

Level const& TH_LEVEL_NAME(level_)() {
    static constexpr Level kLevel{
        TH_TEXT(TH_STEP_NAMESPACE),
        loops_of<float>(),
        loops_of<double>(),
        widen_half,
        narrow_half,
        widen_bfloat16,
        narrow_bfloat16,
    };
    return kLevel;
}

}  // namespace tensorhash::conv
