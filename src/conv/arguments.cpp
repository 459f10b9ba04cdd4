// The checks of arguments.hpp. Messages are built here, off every hot path.
#include "conv/arguments.hpp"

#include <string>

#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::conv {
namespace {

void require_float(Tensor const& array, std::string_view argument) {
    switch (array.dtype()) {
        case Dtype::Float16:
        case Dtype::BFloat16:
        case Dtype::Float32:
        case Dtype::Float64:
            return;
        default:
            throw TypeError(std::string(argument) +
                            ": expected float32, float64, float16 or bfloat16, got " +
                            std::string(name(array.dtype())));
    }
}

}  // namespace

Tensor check_rows(Tensor const& array, std::string_view argument, std::int64_t rows,
                  std::string_view side) {
    require_float(array, argument);
    require_host(array.device(), argument);
    if (array.rank() != 2 || array.shape()[0] != rows) {
        throw ValueError(std::string(argument) + ": expected shape (" + std::to_string(rows) +
                         ", channels), one row per " + std::string(side) +
                         " row of the kernel map, got " + to_string(array.shape()));
    }
    return array.contiguous();
}

Tensor check_weight(Tensor const& weight, ConvPlan const& plan) {
    require_float(weight, "weight");
    require_host(weight.device(), "weight");
    if (weight.rank() != 3 || weight.shape()[0] != plan.offsets()) {
        throw ValueError("weight: expected shape (" + std::to_string(plan.offsets()) +
                         ", in channels of a group, out channels): one matrix per offset of the "
                         "kernel map, got " +
                         to_string(weight.shape()));
    }
    return weight.contiguous();
}

void require_same_dtype(Tensor const& array, std::string_view argument, Tensor const& other,
                        std::string_view other_argument) {
    if (array.dtype() == other.dtype()) return;
    throw DtypeError(std::string(argument) + ": expected " + std::string(name(other.dtype())) +
                         " as " + std::string(other_argument) + ", got " +
                         std::string(name(array.dtype())),
                     std::string(argument), other.dtype());
}

void check_groups(std::int64_t groups, std::int64_t channels, std::string_view argument) {
    if (groups >= 1 && channels % groups == 0) return;
    throw ValueError("groups: expected a positive divisor of the " + std::to_string(channels) +
                     " channels of " + std::string(argument) + ", got " + std::to_string(groups));
}

}  // namespace tensorhash::conv
