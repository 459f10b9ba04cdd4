// Runs a kernel of a Program: independent threads, several blocks at once, a change of threads
// after any instruction. Everything follows from a seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptx/arena.hpp"
#include "ptx/program.hpp"
#include "ptx/races.hpp"

namespace th_ptx {

struct Options {
    std::uint64_t seed = 1;
    std::uint32_t resident_blocks = 4;  // that run at once
    std::uint32_t slice = 8;            // a thread runs for 1 to `slice` instructions
    // After one in `pause_one_in` atomics a thread pauses for 1 to `pause_rounds` rounds: without
    // pauses the schedule is so fair that some bugs never show. 0: no pauses.
    std::uint32_t pause_one_in = 16;
    std::uint32_t pause_rounds = 64;
    std::uint64_t budget = 50'000'000;  // instructions of one launch: more is an endless loop
};

struct Grid {
    std::uint32_t blocks = 1;
    std::uint32_t block_size = 32;
};

struct Parameters {
    void const* data;
    std::size_t bytes;
};

/// Returns the number of executed instructions. Throws PtxError if the kernel does what a GPU
/// leaves undefined. `races` may be null; otherwise it collects the races.
std::uint64_t launch(Kernel const& kernel, Grid const& grid, Parameters const& parameters,
                     Arena& arena, Races* races, Options const& options);

}  // namespace th_ptx
