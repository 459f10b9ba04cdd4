// The gradient of the weights. The pairs of an offset are cut into parts by count, whatever the
// threads; each part is summed by one thread, and the parts of an offset are added in order.
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

namespace tensorhash::conv {
namespace {

struct Part {
    std::size_t offset;
    Run run;
};

/// Short parts occupy many threads; parts are longer if their sums would need more than 256 MiB.
/// The cuts, like the result, depend on the map and the channels only.
std::vector<Part> cut_parts(PlanData const& plan, std::size_t bytes_of_sums) {
    constexpr std::int64_t kPartPairs = 8192;
    constexpr std::size_t kMostBytes = std::size_t{256} << 20;
    auto const wanted = static_cast<std::size_t>(plan.bounds.back() / kPartPairs) + plan.groups();
    auto const longer = static_cast<std::int64_t>(wanted * bytes_of_sums / kMostBytes + 1);
    std::int64_t const pairs = kPartPairs * longer;
    std::vector<Part> parts;
    for (std::size_t k = 0; k < plan.groups(); ++k) {
        std::int64_t const end = plan.bounds[k + 1];
        for (std::int64_t at = plan.bounds[k]; at < end; at += pairs) {
            parts.push_back({k, {at, std::min(at + pairs, end)}});
        }
    }
    return parts;
}

template <class S>
class WeightGradient {
public:
    using T = typename S::Computed;

    WeightGradient(PlanData const& plan, Channels channels, T const* features, T const* gradient)
        : level_(level()), loops_(level_.loops<T>()), plan_(plan), channels_(channels),
          features_(features), gradient_(gradient), wide_(padded(channels.out, loops_.lanes)),
          of_group_(padded(channels.in, loops_.outer_rows(channels.out)) * wide_),
          // Every level must cut alike: bytes without padding.
          parts_(cut_parts(plan, channels.groups * channels.in * channels.out * sizeof(T))),
          sums_(parts_.size() * channels.groups * of_group_ * sizeof(T)) {}

    void run(Tensor& out) {
        double const work = static_cast<double>(plan_.bounds.back()) *
                            static_cast<double>(channels_.groups * channels_.in) *
                            static_cast<double>(channels_.out);
        std::size_t const threads = worthwhile_threads(work, parts_.size());
        share_parts(parts_.size(), threads, [&](auto const& next) {
            runtime::Block panel(panel_elements(loops_, channels_.in, channels_.out) * sizeof(T));
            for (std::size_t i = next(); i < parts_.size(); i = next()) {
                sum_part(i, reinterpret_cast<T*>(panel.data()));
            }
        });
        auto* const to = static_cast<typename S::Stored*>(out.data());
        share_parts(plan_.groups(), threads, [&](auto const& next) {
            std::vector<T> row(channels_.groups * channels_.out);
            for (std::size_t k = next(); k < plan_.groups(); k = next()) finish(k, row, to);
        });
    }

private:
    T* sums_of(std::size_t part, std::size_t group) {
        return reinterpret_cast<T*>(sums_.data()) + (part * channels_.groups + group) * of_group_;
    }

    void sum_part(std::size_t part, T* panel) {
        for (std::size_t g = 0; g < channels_.groups; ++g) {
            T* const sums = sums_of(part, g);
            std::memset(sums, 0, of_group_ * sizeof(T));
            loops_.outer({
                .pairs = plan_.pairs(),
                .run = parts_[part].run,
                .in = channels_.in,
                .out = channels_.out,
                .features = features_ + g * channels_.in,
                .feature_stride = channels_.groups * channels_.in,
                .gradient = gradient_ + g * channels_.out,
                .gradient_stride = channels_.groups * channels_.out,
                .sums = sums,
                .panel = panel,
            });
        }
    }

    /// Adds the parts of offset k in order and writes its matrix, row by row.
    void finish(std::size_t k, std::vector<T>& row, typename S::Stored* out) {
        auto const before = [](Part const& part, std::size_t offset) {
            return part.offset < offset;
        };
        auto const first = std::lower_bound(parts_.begin(), parts_.end(), k, before);
        auto const last = std::lower_bound(first, parts_.end(), k + 1, before);
        for (std::size_t c = 0; c < channels_.in; ++c) {
            std::fill(row.begin(), row.end(), T{0});
            for (auto part = first; part != last; ++part) {
                auto const number = static_cast<std::size_t>(part - parts_.begin());
                for (std::size_t g = 0; g < channels_.groups; ++g) {
                    T const* const from = sums_of(number, g) + c * wide_;
                    T* const to = row.data() + g * channels_.out;
                    for (std::size_t o = 0; o < channels_.out; ++o) to[o] += from[o];
                }
            }
            narrow<S>(level_, row.data(), out + (k * channels_.in + c) * row.size(), row.size());
        }
    }

    Level const& level_;
    Loops<T> const& loops_;
    PlanData const& plan_;
    Channels channels_;
    T const* features_;
    T const* gradient_;
    std::size_t wide_;      // padded columns of a group's sums
    std::size_t of_group_;  // elements of a group's sums
    std::vector<Part> parts_;
    runtime::Block sums_;
};

}  // namespace

Tensor weight_gradient(ConvPlan const& plan, Tensor const& features, Tensor const& gradient,
                       std::int64_t groups) {
    Tensor const ins = check_rows(features, "features", plan.num_in(), "in");
    Tensor const outs = check_rows(gradient, "gradient", plan.num_out(), "out");
    require_same_dtype(outs, "gradient", ins, "features");
    check_groups(groups, ins.shape()[1], "features");
    check_groups(groups, outs.shape()[1], "gradient");
    Channels const channels{static_cast<std::size_t>(groups),
                            static_cast<std::size_t>(ins.shape()[1] / groups),
                            static_cast<std::size_t>(outs.shape()[1] / groups)};
    Tensor out =
        Tensor::empty({plan.offsets(), ins.shape()[1] / groups, outs.shape()[1]}, ins.dtype());
    if (out.size() == 0) return out;
    with_storage(ins.dtype(), [&]<class S>(S) {
        Computed<S> const left(level(), ins);
        Computed<S> const right(level(), outs);
        WeightGradient<S>(plan.data(), channels, left.data(), right.data()).run(out);
    });
    return out;
}

}  // namespace tensorhash::conv
