// Sparse convolution over a kernel map, with both gradients, on the CPU.
#pragma once

#include <cstdint>
#include <memory>

#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::conv {

struct PlanData;

/// A kernel map that is ready for convolutions: checked once, and copied, so that later writes to
/// the map's arrays have no effect. A handle: copies share it. Many threads may use it at once.
class TH_API ConvPlan {
public:
    /// Throws TypeError, ValueError or DeviceError unless the map has row numbers below num_in and
    /// num_out, and out rows that ascend within each offset.
    explicit ConvPlan(coords::KernelMap const& map);

    std::int64_t offsets() const noexcept;
    std::int64_t pairs() const noexcept;
    std::int64_t num_in() const noexcept;
    std::int64_t num_out() const noexcept;

    PlanData const& data() const noexcept { return *data_; }

private:
    std::shared_ptr<PlanData const> data_;
};

// Features are [num_in, C], results and their gradients [num_out, D], weights [K, C / groups, D].
// All have one dtype: float32, float64, float16 or bfloat16; half types are summed in float. The
// bits are the same on any number of threads, and on all x86-64 levels with FMA.

/// out[o] = the sum of features[i] times weight[k] over all pairs (i, o) of all offsets k.
TH_API Tensor forward(ConvPlan const& plan, Tensor const& features, Tensor const& weight,
                      std::int64_t groups = 1);

/// [num_in, C]: the gradient of forward() in `features`, from that of its result.
TH_API Tensor input_gradient(ConvPlan const& plan, Tensor const& gradient, Tensor const& weight,
                             std::int64_t groups = 1);

/// [K, C / groups, D]: the gradient of forward() in `weight`, from that of its result.
TH_API Tensor weight_gradient(ConvPlan const& plan, Tensor const& features, Tensor const& gradient,
                              std::int64_t groups = 1);

}  // namespace tensorhash::conv
