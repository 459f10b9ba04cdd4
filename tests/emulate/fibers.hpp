// A GPU for host compilers. Every thread of a launch is a fiber, and one system thread runs them
// all, so a seed repeats a run exactly. Fibers take turns at barriers and collectives and, in
// random order, at switch points. What no GPU promises to survive is an error with a sentence: a
// wrong mask, lanes that meet in different calls, a barrier that not all threads reach, a loop
// without end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "device/host_grid.hpp"

namespace tensorhash::emulate {

/// A kernel did what no GPU promises to survive.
struct KernelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::uint64_t seed = 1;
    std::uint32_t switch_one_in = 4;  // how often a switch point changes fibers; 0: never
    std::uint32_t nap_one_in = 16;    // how often a fiber then sleeps for 1 to 64 rounds; 0: never
    std::uint32_t resident = 2;       // blocks that run at the same time
    std::uint64_t budget = 20'000'000;  // switch points, barriers and collectives of one launch
};

struct Grid {
    std::uint32_t blocks = 1;
    std::uint32_t threads = kWarpSize;  // per block

    static constexpr std::uint32_t kWarpSize = 32;
};

/// Runs body(shared) once per thread of the grid. `shared` is the block's memory; nothing has been
/// written to it.
void run_grid(Grid grid, std::size_t shared_bytes, std::function<void(void* shared)> const& body,
              Options const& options);

/// The grid for one thread per row, in blocks of whole warps. At most `most_blocks`: bodies take
/// further rows in turn.
inline Grid grid_for(std::uint64_t rows, std::uint32_t most_blocks, std::uint32_t threads) {
    std::uint64_t const warps = (rows + Grid::kWarpSize - 1) / Grid::kWarpSize;
    auto const size =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, warps * Grid::kWarpSize));
    return {
        static_cast<std::uint32_t>(std::min<std::uint64_t>((rows + size - 1) / size, most_blocks)),
        size};
}

/// Runs a kernel body with one thread per row. A body with `kThreads` is one block of that size.
template <class Body>
void run_body(std::uint64_t rows, Body const& body, Options const& options,
              std::uint32_t most_blocks = 4, std::uint32_t threads = 128) {
    if (rows == 0) {
        return;
    }
    Grid grid = grid_for(rows, most_blocks, threads);
    if constexpr (requires { Body::kThreads; }) {
        grid = {1, Body::kThreads};
    }
    using Shared = typename Body::Shared;
    run_grid(
        grid, sizeof(Shared), [&](void* shared) { body(*static_cast<Shared*>(shared)); }, options);
}

}  // namespace tensorhash::emulate
