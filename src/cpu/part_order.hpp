// The order of first occurrence of groups that were found part by part.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/group_engine.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::cpu {

/// The first row of each group, per part. They ascend within a part, and no two are equal.
using FirstRows = std::array<std::span<std::uint32_t const>, kParts>;

/// Ranks the groups of all parts by their first rows. Works on windows of rows: a bitmap of the
/// first rows in a window gives each group its rank there.
class PartOrder {
public:
    /// All first rows are below `rows`.
    PartOrder(FirstRows const& first_rows, std::size_t rows);

    std::size_t groups() const { return bases_[windows_]; }

    /// Calls body(part, group in the part, rank) for all groups, on all threads.
    template <class Body>
    void for_groups(Body&& body) const {
        runtime::run_tasks(windows_, [&](std::size_t window) {
            std::array<std::uint64_t, kWindow / 64> bits{};
            std::array<std::uint32_t, kWindow / 64> ranks;
            for_window(window, [&](std::size_t, std::size_t, std::size_t row) {
                bits[row / 64] |= std::uint64_t{1} << (row % 64);
            });
            std::uint32_t rank = 0;
            for (std::size_t i = 0; i < bits.size(); ++i) {
                ranks[i] = rank;
                rank += static_cast<std::uint32_t>(std::popcount(bits[i]));
            }
            for_window(window, [&](std::size_t part, std::size_t group, std::size_t row) {
                std::uint64_t const below = bits[row / 64] & ((std::uint64_t{1} << (row % 64)) - 1);
                body(part, group,
                     bases_[window] + ranks[row / 64] +
                         static_cast<std::size_t>(std::popcount(below)));
            });
        });
    }

private:
    static constexpr std::size_t kWindow = std::size_t{1} << 17;

    std::size_t begin(std::size_t window, std::size_t part) const {
        return starts_[window * kParts + part];
    }
    std::size_t end(std::size_t window, std::size_t part) const {
        return window + 1 < windows_ ? begin(window + 1, part) : first_rows_[part].size();
    }
    /// Calls body(part, group, row in the window).
    template <class Body>
    void for_window(std::size_t window, Body&& body) const {
        for (std::size_t part = 0; part < kParts; ++part) {
            std::uint32_t const* const rows = first_rows_[part].data();
            for (std::size_t group = begin(window, part); group < end(window, part); ++group) {
                body(part, group, rows[group] % kWindow);
            }
        }
    }

    FirstRows first_rows_;
    std::size_t windows_;
    std::vector<std::uint32_t> starts_;  // [window, part]: the part's first group in the window
    std::vector<std::size_t> bases_;     // [window]: groups in earlier windows
};

}  // namespace tensorhash::cpu
