// Runs small hand-written kernels. Each has two pointers as parameters, in %rd1 and %rd2, and its
// thread's number in the grid in %r1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/machine.hpp"

namespace th_ptx {

std::string small_module(std::string const& body);

/// The one kernel of small_module(body).
Kernel small_kernel(std::string const& body);

class SmallDevice {
public:
    Options options;
    Grid grid;

    /// Words of device memory with these values.
    std::uint32_t* words(std::vector<std::uint32_t> const& values);
    std::uint32_t* unwritten_words(std::size_t count);
    std::vector<std::uint32_t> read(std::uint32_t const* words, std::size_t count) const;

    std::uint64_t run(Kernel const& kernel, void* first = nullptr, void* second = nullptr);
    std::uint64_t run(std::string const& body, void* first = nullptr, void* second = nullptr);
    /// The message of the PtxError that the run must throw; empty if it throws none.
    std::string error_of(std::string const& body, void* first = nullptr, void* second = nullptr);

    std::set<std::string> const& races() const { return races_.found(); }

private:
    Arena arena_{std::size_t{1} << 20};
    Races races_{arena_.bytes()};
    std::vector<std::unique_ptr<Kernel>> kernels_;  // races refer to their instructions
};

/// The races of one run of `body` over 16 words of zeros, for each of `seeds` seeds.
std::set<std::string> races_of(std::string const& body, Grid grid, int seeds = 10);

}  // namespace th_ptx
