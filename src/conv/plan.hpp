// What ConvPlan keeps of a kernel map: its own copy of the pairs, where each stretch of out rows
// begins in every offset, and on demand the map turned round for the gradient of the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "conv/loops.hpp"
#include "tensorhash/conv.hpp"

namespace tensorhash::conv {

/// The map that gives the gradient of the input: the same map if offset K - 1 - k is
/// offset k with in and out exchanged (a submanifold convolution), else the exchanged map.
struct Turned {
    bool mirrored = false;
    std::shared_ptr<PlanData const> map;  // null if mirrored
};

struct PlanData {
    /// Copies and checks. Throws as ConvPlan does.
    explicit PlanData(coords::KernelMap const& map);

    std::size_t groups() const noexcept { return bounds.size() - 1; }
    PairRows pairs() const noexcept;
    /// The pairs of offset k with out rows of stretches [first, last).
    Run run(std::size_t k, std::size_t first, std::size_t last) const noexcept {
        std::int64_t const* const starts = stretch_starts.data() + k * (stretches + 1);
        return {starts[first], starts[last]};
    }
    /// Made on first call, then kept. Many threads may call it at once.
    Turned const& turned() const;

    coords::KernelMap map;             // contiguous, never changed
    std::vector<std::int64_t> bounds;  // of the offsets: groups() + 1
    std::size_t stretch_rows = 0;      // out rows of a stretch
    std::size_t stretches = 0;
    std::vector<std::int64_t> stretch_starts;  // [groups()][stretches + 1]

private:
    void find_stretches();

    mutable std::once_flag turned_once_;
    mutable Turned turned_;
};

}  // namespace tensorhash::conv
