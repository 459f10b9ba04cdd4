// Picks the key reader of a loop, for the functions that return a level's loops.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/wide_words.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {

/// pick(std::type_identity<Reader>) with the reader for keys of this format.
template <class Pick>
decltype(auto) with_reader(std::uint32_t key_bytes, std::uint32_t float_bytes, Pick&& pick) {
    bool const raw = float_bytes == 0;
    if (key_bytes <= 8) {
        return raw && key_bytes == 8   ? pick(std::type_identity<step::Narrow8>())
               : raw && key_bytes == 4 ? pick(std::type_identity<step::Narrow4>())
                                       : pick(std::type_identity<step::NarrowAny>());
    }
    return raw && key_bytes == 12      ? pick(std::type_identity<step::Wide12>())
           : raw && key_bytes == 16    ? pick(std::type_identity<step::Wide16>())
           : raw && key_bytes == 64    ? pick(std::type_identity<step::Wide64>())
           : raw && key_bytes % 8 == 0 ? pick(std::type_identity<step::WideWords>())
                                       : pick(std::type_identity<step::WideAny>());
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::cpu
