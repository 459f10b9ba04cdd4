// From a dtype to the type in which it is computed, and back. Half types become floats once, before
// the loops run: every row is read several times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "conv/loops.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "tensor/stored.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::conv {

/// Calls f with the storage type of a float dtype: Plain<float>, Plain<double>, Half, BrainHalf.
template <class F>
auto with_storage(Dtype dtype, F&& f) {
    switch (dtype) {
        case Dtype::Float64:
            return f(Plain<double>{});
        case Dtype::Float16:
            return f(Half{});
        case Dtype::BFloat16:
            return f(BrainHalf{});
        default:
            return f(Plain<float>{});
    }
}

template <class S>
inline constexpr bool kIsWide = std::is_same_v<typename S::Stored, typename S::Computed>;

/// Copies `count` elements to the computed type or back.
template <class S>
void widen(Level const& level, typename S::Stored const* from, typename S::Computed* to,
           std::size_t count) {
    if constexpr (kIsWide<S>) {
        std::memcpy(to, from, count * sizeof(*to));
    } else if constexpr (std::is_same_v<S, Half>) {
        level.widen_half(from, to, count);
    } else {
        level.widen_bfloat16(from, to, count);
    }
}

template <class S>
void narrow(Level const& level, typename S::Computed const* from, typename S::Stored* to,
            std::size_t count) {
    if constexpr (kIsWide<S>) {
        std::memcpy(to, from, count * sizeof(*to));
    } else if constexpr (std::is_same_v<S, Half>) {
        level.narrow_half(from, to, count);
    } else {
        level.narrow_bfloat16(from, to, count);
    }
}

/// The elements of a contiguous tensor in the computed type: its own memory, or a converted copy.
template <class S>
class Computed {
public:
    using T = typename S::Computed;

    Computed(Level const& level, Tensor tensor) : tensor_(std::move(tensor)) {
        if constexpr (!kIsWide<S>) {
            auto const count = static_cast<std::size_t>(tensor_.size());
            copy_ = runtime::Block(count * sizeof(T));
            auto const* const from = static_cast<typename S::Stored const*>(tensor_.data());
            auto* const to = reinterpret_cast<T*>(copy_.data());
            constexpr std::size_t kGrain = 1 << 15;
            runtime::for_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
                widen<S>(level, from + begin, to + begin, end - begin);
            });
        }
    }

    T const* data() const noexcept {
        if constexpr (kIsWide<S>) {
            return static_cast<T const*>(tensor_.data());
        } else {
            return reinterpret_cast<T const*>(copy_.data());
        }
    }

private:
    Tensor tensor_;
    runtime::Block copy_;
};

}  // namespace tensorhash::conv
