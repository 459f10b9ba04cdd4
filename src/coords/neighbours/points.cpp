// The checks of points.hpp. Rows are read once, in parallel, and what is wrong with them is counted on the way.
#include "coords/neighbours/points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "coords/rows/numbers.hpp"
#include "runtime/parallel.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

struct Tally {
    std::size_t nan = 0;
    std::size_t infinite = 0;
    std::size_t inexact = 0;
    std::size_t first = kNone;  // the first element that is one of them

    bool clean() const noexcept { return first == kNone; }
};

template <class Type>
Tally convert(typename Type::Stored const* from, double* to, std::size_t begin, std::size_t end) {
    Tally tally;
    for (std::size_t i = begin; i < end; ++i) {
        auto const value = Type::load(from[i]);
        to[i] = static_cast<double>(value);
        bool bad = false;
        if constexpr (std::is_floating_point_v<std::remove_const_t<decltype(value)>>) {
            if (std::isfinite(value)) continue;
            ++(std::isnan(value) ? tally.nan : tally.infinite);
            bad = true;
        } else if constexpr (sizeof(value) == 8) {
            constexpr double kExact = 9007199254740992.0;  // 2^53
            bad = to[i] > kExact || to[i] < -kExact;
            tally.inexact += bad;
        }
        if (bad && tally.clean()) tally.first = i;
    }
    return tally;
}

Tally joined(std::vector<Tally> const& tallies) {
    Tally all;
    for (Tally const& one : tallies) {
        all.nan += one.nan;
        all.infinite += one.infinite;
        all.inexact += one.inexact;
        all.first = std::min(all.first, one.first);
    }
    return all;
}

[[noreturn]] void fail_values(Tally const& tally, std::size_t axes, std::string const& argument) {
    std::string const where = " (the first in row " + std::to_string(tally.first / axes) +
                              ", column " + std::to_string(tally.first % axes) + ")";
    if (tally.inexact > 0) {
        throw ValueError(argument + ": expected integers within 2^53, which float64 holds; got " +
                         std::to_string(tally.inexact) + " beyond" + where +
                         "; subtract an origin first");
    }
    throw ValueError(argument + ": expected finite numbers, got " + std::to_string(tally.nan) +
                     " NaN and " + std::to_string(tally.infinite) + " infinite" + where +
                     "; drop those rows");
}

}  // namespace

Points check_points(Tensor const& tensor, std::string const& argument) {
    require_usable(tensor.device(), argument);
    Shape const& shape = tensor.shape();
    if (shape.size() != 2 || shape[1] < 1) {
        throw ValueError(argument + ": expected shape (N, D), a row a point, got " +
                         to_string(shape));
    }
    if (tensor.dtype() == Dtype::Bool) {
        throw TypeError(argument + ": expected floats or integers, got bool");
    }
    if (shape[0] > static_cast<std::int64_t>(table::kMaxEntries)) {
        throw ValueError(argument + ": expected at most " + std::to_string(table::kMaxEntries) +
                         " points, got " + std::to_string(shape[0]));
    }
    Points points{Tensor::empty(shape, Dtype::Float64), static_cast<std::size_t>(shape[0]),
                  static_cast<std::size_t>(shape[1])};
    Tensor const source = tensor.contiguous();
    auto const chunks = runtime::cut(static_cast<std::size_t>(tensor.size()), 1 << 15);
    std::vector<Tally> tallies(std::max<std::size_t>(1, chunks.count));
    visit_number(tensor.dtype(), argument, [&](auto type) {
        using Type = decltype(type);
        auto const* const from = static_cast<typename Type::Stored const*>(source.data());
        auto* const to = static_cast<double*>(points.tensor.data());
        runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            tallies[chunk] = convert<Type>(from, to, begin, end);
        });
    });
    Tally const all = joined(tallies);
    if (!all.clean()) fail_values(all, points.axes, argument);
    return points;
}

Tensor check_batch_of(Tensor const& batch, std::size_t rows, std::string const& argument) {
    require_usable(batch.device(), argument);
    if (batch.shape() != Shape{static_cast<std::int64_t>(rows)}) {
        throw ValueError(argument + ": expected shape (" + std::to_string(rows) +
                         ",), the batch of each row, got " + to_string(batch.shape()));
    }
    Tensor source = batch.contiguous();
    if (source.dtype() == Dtype::Int64) return source;
    Tensor wide = Tensor::empty(batch.shape(), Dtype::Int64);
    auto const to = wide.as_mutable<std::int64_t>();
    visit_number(batch.dtype(), argument, [&](auto type) {
        using Type = decltype(type);
        if constexpr (!std::is_integral_v<typename Type::Value> || std::is_same_v<Type, Truth>) {
            throw TypeError(argument + ": expected integers, got " +
                            std::string(name(batch.dtype())));
        } else {
            auto const* const from = static_cast<typename Type::Stored const*>(source.data());
            for (std::size_t i = 0; i < rows; ++i) {
                to[i] = static_cast<std::int64_t>(from[i]);
                if constexpr (std::is_same_v<typename Type::Value, std::uint64_t>) {
                    if (to[i] < 0) {
                        throw ValueError(argument + ": expected integers that fit int64, got " +
                                         std::to_string(from[i]) + " in row " + std::to_string(i));
                    }
                }
            }
        }
    });
    return wide;
}

}  // namespace tensorhash::coords
