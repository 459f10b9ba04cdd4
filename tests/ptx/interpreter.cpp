#include "ptx/interpreter.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

namespace th_ptx {
namespace {

constexpr std::uint32_t kWarpSize = 32;

// A thread that always runs for a few instructions finds other bugs than one that runs for many.
constexpr std::uint32_t kSlices[] = {1, 8, 64};

std::map<std::string, std::set<std::uint64_t>>& kernels_so_far() {
    static std::map<std::string, std::set<std::uint64_t>> seeds;
    return seeds;
}

}  // namespace

Program const& program_of_file(std::string const& path) {
    static std::map<std::string, Program> programs;
    auto const known = programs.find(path);
    if (known != programs.end()) return known->second;
    std::ifstream file(path);
    if (!file) throw PtxError("cannot read " + path);
    std::string const text(std::istreambuf_iterator<char>(file), {});
    return programs.emplace(path, parse(text)).first->second;
}

std::map<std::string, std::set<std::uint64_t>> const& kernels_that_ran() {
    return kernels_so_far();
}

std::string name_of(std::type_info const& type) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> const name(
        abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
    return status == 0 ? name.get() : type.name();
}

Grid Interpreter::grid_for(std::uint64_t rows) const {
    std::uint64_t const warps = (rows + kWarpSize - 1) / kWarpSize;
    std::uint64_t const size = std::min<std::uint64_t>(block_size_, warps * kWarpSize);
    std::uint64_t const blocks = std::min<std::uint64_t>((rows + size - 1) / size, most_blocks_);
    return {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(size)};
}

void Interpreter::run(std::string const& name, Grid const& grid, Parameters const& parameters) {
    auto const kernel = program_.find(name);
    if (kernel == program_.end()) throw PtxError("the PTX has no kernel for the body " + name);
    kernels_so_far()[name].insert(seed_);
    options_.seed = options_.seed * 6364136223846793005ull + 1442695040888963407ull;
    options_.slice = kSlices[(options_.seed >> 33) % std::size(kSlices)];
    instructions_ += th_ptx::launch(kernel->second, grid, parameters, arena_, &races_, options_);
}

}  // namespace th_ptx
