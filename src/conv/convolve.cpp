// The result of a convolution, and the gradient of its input: the same sums over the turned map
// with transposed weights. Each tile of out rows belongs to one thread, so an element is the sum
// over ascending offsets of one chain over ascending channels, whatever the tiles and threads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "conv/arguments.hpp"
#include "conv/loops.hpp"
#include "conv/plan.hpp"
#include "conv/storage.hpp"
#include "conv/workers.hpp"
#include "runtime/memory.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::conv {
namespace {

/// How the stored weights [K, C / groups, D] are read.
struct WeightUse {
    bool transposed = false;  // from the out channels to the in channels
    bool mirrored = false;    // offset k uses matrix K - 1 - k
};

/// Weights as the loops read them: [offset][group][column block][in channel][columns, padded].
template <class S>
class PackedWeights {
public:
    using T = typename S::Computed;

    PackedWeights(Loops<T> const& loops, Tensor const& weight, Channels channels, WeightUse use)
        : loops_(loops), weight_(weight), channels_(channels), use_(use),
          offsets_(static_cast<std::size_t>(weight.shape()[0])),
          packed_(offsets_ * of_offset() * sizeof(T)) {
        double const copies = static_cast<double>(offsets_ * of_offset());
        share_parts(offsets_, worthwhile_threads(copies * 4, offsets_), [&](auto const& next) {
            for (std::size_t k = next(); k < offsets_; k = next()) pack_offset(k);
        });
    }

    T const* data() const noexcept { return reinterpret_cast<T const*>(packed_.data()); }

private:
    std::size_t of_group() const { return channels_.in * padded(channels_.out, loops_.lanes); }
    std::size_t of_offset() const { return channels_.groups * of_group(); }

    void pack_offset(std::size_t k) {
        auto const columns = static_cast<std::size_t>(weight_.shape()[2]);
        std::size_t const of_matrix = static_cast<std::size_t>(weight_.shape()[1]) * columns;
        std::size_t const matrix = use_.mirrored ? offsets_ - 1 - k : k;
        auto const* from =
            static_cast<typename S::Stored const*>(weight_.data()) + matrix * of_matrix;
        T* to = reinterpret_cast<T*>(packed_.data()) + k * of_offset();
        for (std::size_t g = 0; g < channels_.groups; ++g, to += of_group()) {
            pack_group(from, columns, to);
            from += use_.transposed ? channels_.in : channels_.out;
        }
    }

    /// Element (c, o) is at from[c * columns + o], or if transposed at from[o * columns + c].
    void pack_group(typename S::Stored const* from, std::size_t columns, T* to) const {
        std::size_t const down = use_.transposed ? 1 : columns;
        std::size_t const across = use_.transposed ? columns : 1;
        for (std::size_t b = 0; b < channels_.out; b += loops_.block_columns) {
            std::size_t const count = std::min(loops_.block_columns, channels_.out - b);
            std::size_t const wide = padded(count, loops_.lanes);
            for (std::size_t c = 0; c < channels_.in; ++c, to += wide) {
                for (std::size_t o = 0; o < count; ++o) {
                    to[o] = S::load(from[c * down + (b + o) * across]);
                }
                std::fill(to + count, to + wide, T{0});
            }
        }
    }

    Loops<T> const& loops_;
    Tensor const& weight_;
    Channels channels_;
    WeightUse use_;
    std::size_t offsets_;
    runtime::Block packed_;
};

/// Stretches per tile: 256 KiB of out rows, a quarter of L2, but at least one stretch and about
/// eight tiles per thread. No effect on results.
std::size_t stretches_of_tile(PlanData const& plan, std::size_t row_bytes) {
    constexpr std::size_t kTileBytes = std::size_t{256} << 10;
    std::size_t const wanted = std::clamp<std::size_t>(kTileBytes / row_bytes, 512, 4096);
    auto const threads = static_cast<std::size_t>(num_threads());
    std::size_t const shared = plan.stretches / (8 * threads);
    return std::max<std::size_t>(1, std::min(wanted / plan.stretch_rows, shared));
}

/// One convolution: what its tiles share.
template <class S>
class Convolution {
public:
    using T = typename S::Computed;
    using Stored = typename S::Stored;

    Convolution(PlanData const& plan, Channels channels, T const* features, T const* weights,
                Tensor& out)
        : level_(level()), loops_(level_.loops<T>()), plan_(plan), channels_(channels),
          features_(features), weights_(weights), out_(static_cast<Stored*>(out.data())),
          row_(channels.groups * channels.out), padded_out_(padded(channels.out, loops_.lanes)),
          in_place_(kIsWide<S> && padded_out_ == channels.out) {}

    void run() {
        std::size_t const step = stretches_of_tile(plan_, row_ * sizeof(T));
        std::size_t const tiles = (plan_.stretches + step - 1) / step;
        double const work = static_cast<double>(plan_.bounds.back()) * static_cast<double>(row_) *
                            static_cast<double>(channels_.in);
        share_parts(tiles, worthwhile_threads(work, tiles), [&](auto const& next) {
            std::vector<Run> runs(plan_.groups());
            runtime::Block sums;
            for (std::size_t tile = next(); tile < tiles; tile = next()) {
                std::size_t const first = tile * step;
                run_tile(first, std::min(first + step, plan_.stretches), runs, sums);
            }
        });
    }

private:
    /// The tile of stretches [first, last). `sums`: scratch for sums that cannot be in the result.
    void run_tile(std::size_t first, std::size_t last, std::vector<Run>& runs,
                  runtime::Block& sums) const {
        std::size_t const begin = first * plan_.stretch_rows;
        std::size_t const end =
            std::min(last * plan_.stretch_rows, static_cast<std::size_t>(plan_.map.num_out));
        for (std::size_t k = 0; k < runs.size(); ++k) runs[k] = plan_.run(k, first, last);
        std::size_t const stride = channels_.groups * padded_out_;
        std::size_t const elements = (end - begin) * stride;
        T* to = nullptr;
        if (in_place_) {
            to = reinterpret_cast<T*>(out_ + begin * row_);
        } else {
            if (sums.bytes() < elements * sizeof(T)) sums = runtime::Block(elements * sizeof(T));
            to = reinterpret_cast<T*>(sums.data());
        }
        std::memset(to, 0, elements * sizeof(T));
        loops_.tile({
            .pairs = plan_.pairs(),
            .runs = runs.data(),
            .offsets = runs.size(),
            .channels = channels_,
            .features = features_,
            .weights = weights_,
            .out = to,
            .out_stride = stride,
            .group_stride = padded_out_,
            .first_row = static_cast<std::int64_t>(begin),
        });
        if (!in_place_) store(to, begin, end);
    }

    /// Writes padded sums to rows [begin, end) of the result.
    void store(T const* sums, std::size_t begin, std::size_t end) const {
        if (padded_out_ == channels_.out) {
            narrow<S>(level_, sums, out_ + begin * row_, (end - begin) * row_);
            return;
        }
        Stored* to = out_ + begin * row_;
        for (std::size_t i = 0; i < (end - begin) * channels_.groups; ++i) {
            narrow<S>(level_, sums, to, channels_.out);
            sums += padded_out_;
            to += channels_.out;
        }
    }

    Level const& level_;
    Loops<T> const& loops_;
    PlanData const& plan_;
    Channels channels_;
    T const* features_;
    T const* weights_;
    Stored* out_;
    std::size_t row_;         // elements of a row of the result
    std::size_t padded_out_;  // columns of a group in the sums
    bool in_place_;           // the sums are the result
};

Tensor convolve(PlanData const& plan, Tensor const& features, Tensor const& weight,
                Channels channels, WeightUse use) {
    Tensor out =
        Tensor::empty({plan.map.num_out, static_cast<std::int64_t>(channels.groups * channels.out)},
                      features.dtype());
    if (out.size() == 0) return out;
    with_storage(features.dtype(), [&]<class S>(S) {
        using T = typename S::Computed;
        Level const& best = level();
        Computed<S> const rows(best, features);
        PackedWeights<S> const packed(best.loops<T>(), weight, channels, use);
        Convolution<S>(plan, channels, rows.data(), packed.data(), out).run();
    });
    return out;
}

}  // namespace

Tensor forward(ConvPlan const& plan, Tensor const& features, Tensor const& weight,
               std::int64_t groups) {
    Tensor const rows = check_rows(features, "features", plan.num_in(), "in");
    Tensor const matrices = check_weight(weight, plan);
    require_same_dtype(matrices, "weight", rows, "features");
    check_groups(groups, matrices.shape()[2], "weight");
    check_groups(groups, rows.shape()[1], "features");
    if (matrices.shape()[1] != rows.shape()[1] / groups) {
        throw ValueError("weight: expected shape (" + std::to_string(plan.offsets()) + ", " +
                         std::to_string(rows.shape()[1] / groups) +
                         ", out channels): offsets of the kernel map, channels of features by "
                         "group, got " +
                         to_string(matrices.shape()));
    }
    Channels const channels{static_cast<std::size_t>(groups),
                            static_cast<std::size_t>(matrices.shape()[1]),
                            static_cast<std::size_t>(matrices.shape()[2] / groups)};
    return convolve(plan.data(), rows, matrices, channels, {});
}

Tensor input_gradient(ConvPlan const& plan, Tensor const& gradient, Tensor const& weight,
                      std::int64_t groups) {
    Tensor const rows = check_rows(gradient, "gradient", plan.num_out(), "out");
    Tensor const matrices = check_weight(weight, plan);
    require_same_dtype(matrices, "weight", rows, "gradient");
    check_groups(groups, rows.shape()[1], "gradient");
    if (matrices.shape()[2] != rows.shape()[1]) {
        throw ValueError("weight: expected " + std::to_string(rows.shape()[1]) +
                         " out channels as the gradient has, got shape " +
                         to_string(matrices.shape()));
    }
    Channels const channels{static_cast<std::size_t>(groups),
                            static_cast<std::size_t>(matrices.shape()[2] / groups),
                            static_cast<std::size_t>(matrices.shape()[1])};
    Turned const& turned = plan.data().turned();
    PlanData const& map = turned.mirrored ? plan.data() : *turned.map;
    return convolve(map, rows, matrices, channels, {true, turned.mirrored});
}

}  // namespace tensorhash::conv
