// generate_kernel_map: the choice of a path, and what is known of the result besides its pairs.
#include "tensorhash/coords/kernel_map.hpp"

#include <string>
#include <utility>

#include "coords/question.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

/// The group whose offset is zero, if it joins every row with itself.
std::optional<std::int64_t> identity_of(Question const& question, bool repeated) {
    if (!question.equal || !question.unstrided || !question.odd || repeated) {
        return {};
    }
    for (std::size_t k = 0; k < question.all; ++k) {
        std::int32_t const* const offset = question.offset(k);
        bool zero = true;
        for (std::size_t axis = 0; axis < question.axes; ++axis) {
            zero = zero && offset[axis] == 0;
        }
        if (zero) {
            return static_cast<std::int64_t>(k);
        }
    }
    return {};
}

}  // namespace

Strategy strategy_from_name(std::string_view name) {
    for (Strategy const strategy :
         {Strategy::Flat, Strategy::Hierarchical, Strategy::Merge, Strategy::Seed}) {
        if (coords::name(strategy) == name) {
            return strategy;
        }
    }
    throw ValueError(
        "strategy: expected \"flat\", \"hierarchical\", \"merge\", \"seed\" or None, got \"" +
        std::string(name) + "\"");
}

std::string_view name(Strategy strategy) noexcept {
    switch (strategy) {
        case Strategy::Flat:
            return "flat";
        case Strategy::Hierarchical:
            return "hierarchical";
        case Strategy::Merge:
            return "merge";
        case Strategy::Seed:
            return "seed";
        case Strategy::Fastest:
            break;
    }
    return "fastest";
}

KernelMap generate_kernel_map(Tensor const& in_coords, Tensor const& out_coords,
                              Shape const& stride, Kernel const& kernel,
                              KernelMapOptions const& options) {
    Question const question = check_question(in_coords, out_coords, stride, kernel, options);
    Answer answer = merge_kernel_map(question);
    if (question.groups < question.all && answer.repeated) {
        throw ValueError(
            "skip_symmetric_kernel_map: expected distinct coordinates; a map with repeated rows is "
            "not symmetric");
    }
    KernelMap map;
    map.identity_map_index = identity_of(question, answer.repeated);
    map.in_maps = std::move(answer.in_maps);
    map.out_maps = std::move(answer.out_maps);
    map.offsets = std::move(answer.offsets);
    map.num_in = static_cast<std::int64_t>(question.in.rows);
    map.num_out = static_cast<std::int64_t>(question.out.rows);
    map.strategy = Strategy::Merge;
    map.coarse_probes = answer.coarse_probes;
    map.fine_probes = answer.fine_probes;
    return map;
}

}  // namespace tensorhash::coords
