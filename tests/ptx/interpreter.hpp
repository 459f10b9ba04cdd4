// A device that interprets PTX: memory, launches of kernel bodies, and the races that they had.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <typeinfo>
#include <utility>

#include "ptx/machine.hpp"

namespace th_ptx {

/// The program in a file that the build has compiled, parsed once per process.
Program const& program_of_file(std::string const& path);

/// The kernels that the Interpreters of this process have run, each with their seeds.
std::map<std::string, std::set<std::uint64_t>> const& kernels_that_ran();

/// "ns::Body<int>" for typeid(ns::Body<int>).
std::string name_of(std::type_info const& type);

class Interpreter {
public:
    explicit Interpreter(Program const& program, Options const& options = {},
                         std::uint32_t most_blocks = 3, std::uint32_t block_size = 64)
        : program_(program), seed_(options.seed), options_(options), most_blocks_(most_blocks),
          block_size_(block_size) {}

    Arena& memory() { return arena_; }

    /// One thread per row in blocks of whole warps, at most `most_blocks`. A body with `kThreads`
    /// is one block of that size. Every launch has its own schedule.
    template <class Body>
    void launch(std::uint64_t rows, Body const& body) {
        if (rows == 0) return;
        Grid grid = grid_for(rows);
        if constexpr (requires { Body::kThreads; }) grid = {1, Body::kThreads};
        run(name_of(typeid(Body)), grid, {&body, sizeof body});
    }
    /// The same for a kernel of its own, such as "sum(Numbers)", and its one argument.
    template <class Argument>
    void launch_kernel(std::string const& name, std::uint64_t rows, Argument const& argument) {
        if (rows != 0) run(name, grid_for(rows), {&argument, sizeof argument});
    }

    std::uint64_t instructions() const { return instructions_; }
    std::set<std::string> const& races() const { return races_.found(); }

private:
    Grid grid_for(std::uint64_t rows) const;
    void run(std::string const& name, Grid const& grid, Parameters const& parameters);

    Program const& program_;
    std::uint64_t seed_;
    Options options_;
    std::uint32_t most_blocks_;
    std::uint32_t block_size_;
    Arena arena_;
    Races races_{arena_.bytes()};
    std::uint64_t instructions_ = 0;
};

}  // namespace th_ptx
