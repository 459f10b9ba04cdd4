// Converts points to float64. One parallel pass converts the numbers and counts the bad ones.
#include "coords/neighbours/points.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "backend/points.hpp"
#include "runtime/parallel.hpp"
#include "tensor/numbers.hpp"

namespace tensorhash::coords {
namespace {

using backend::BadNumbers;

template <class Type>
BadNumbers convert(typename Type::Stored const* from, double* to, std::size_t begin,
                   std::size_t end) {
    BadNumbers bad_numbers;
    for (std::size_t i = begin; i < end; ++i) {
        auto const value = Type::load(from[i]);
        to[i] = static_cast<double>(value);
        bool bad = false;
        if constexpr (std::is_floating_point_v<std::remove_const_t<decltype(value)>>) {
            if (std::isfinite(value)) continue;
            ++(std::isnan(value) ? bad_numbers.nan : bad_numbers.infinite);
            bad = true;
        } else if constexpr (sizeof(value) == 8) {
            constexpr double kExact = 9007199254740992.0;  // 2^53
            bad = to[i] > kExact || to[i] < -kExact;
            bad_numbers.inexact += bad;
        }
        if (bad && bad_numbers.clean()) bad_numbers.first = i;
    }
    return bad_numbers;
}

BadNumbers sum_of(std::vector<BadNumbers> const& counts) {
    BadNumbers all;
    for (BadNumbers const& one : counts) {
        all.nan += one.nan;
        all.infinite += one.infinite;
        all.inexact += one.inexact;
        all.first = std::min(all.first, one.first);
    }
    return all;
}

}  // namespace

Points to_points(Tensor const& tensor, std::string const& argument) {
    Shape const& shape = tensor.shape();
    Points points{Tensor::empty(shape, Dtype::Float64), static_cast<std::size_t>(shape[0]),
                  static_cast<std::size_t>(shape[1])};
    Tensor const source = tensor.contiguous();
    auto const chunks = runtime::cut(static_cast<std::size_t>(tensor.size()), 1 << 15);
    std::vector<BadNumbers> counts(std::max<std::size_t>(1, chunks.count));
    visit_number(tensor.dtype(), argument, [&](auto type) {
        using Type = decltype(type);
        auto const* const from = static_cast<typename Type::Stored const*>(source.data());
        auto* const to = static_cast<double*>(points.tensor.data());
        runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            counts[chunk] = convert<Type>(from, to, begin, end);
        });
    });
    BadNumbers const all = sum_of(counts);
    if (!all.clean()) backend::fail_numbers(all, points.axes, argument);
    return points;
}

Tensor to_batch(Tensor const& batch, std::string const& argument) {
    Tensor source = batch.contiguous();
    if (source.dtype() == Dtype::Int64) return source;
    Tensor wide = Tensor::empty(batch.shape(), Dtype::Int64);
    auto const to = wide.as_mutable<std::int64_t>();
    visit_number(batch.dtype(), argument, [&](auto type) {
        using Type = decltype(type);
        if constexpr (std::is_integral_v<typename Type::Computed>) {
            auto const* const from = static_cast<typename Type::Stored const*>(source.data());
            for (std::size_t i = 0; i < to.size(); ++i) {
                to[i] = static_cast<std::int64_t>(from[i]);
                if constexpr (std::is_same_v<typename Type::Computed, std::uint64_t>) {
                    if (to[i] < 0) {
                        backend::fail_batch_number(argument, from[i], i);
                    }
                }
            }
        }
    });
    return wide;
}

}  // namespace tensorhash::coords
