// tensorhash_fuzz [seed [programs]]: random programs against the oracle, then damaged files.
// Program i runs with seed + i; what fails is repeated by giving that seed and one program.
#include <stdlib.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>

#include "fuzz.hpp"
#include "tensorhash/tensorhash.hpp"

namespace th_test {

Scratch::Scratch() {
    std::string name = std::filesystem::temp_directory_path() / "tensorhash-fuzz-XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
}

Scratch::~Scratch() { std::filesystem::remove_all(folder_); }

}  // namespace th_test

namespace {

// Sanitized builds are ten times slower; the full count is the release build's.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t default_programs = 40;
constexpr int mutations = 2000;
#else
constexpr std::uint64_t default_programs = 260;
constexpr int mutations = 10000;
#endif
constexpr int batches_each = 100;

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    std::uint64_t programs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : default_programs;
    std::printf("tensorhash_fuzz: seed %llu, %llu programs of %d batches\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(programs),
                batches_each);
    std::fflush(stdout);
    th_test::Tally tally;
    std::uint64_t at = seed;
    try {
        th_test::Scratch scratch;
        for (; at < seed + programs; ++at) th_test::fuzz_table(at, batches_each, scratch, tally);
        at = seed;
        th_test::fuzz_files(seed, mutations, scratch, tally);
        th_test::fuzz_sealed_files(seed, mutations / 2, tally);
    } catch (std::exception const& error) {
        std::printf("FAILED: %s\nto repeat: tensorhash_fuzz %llu 1\n", error.what(),
                    static_cast<unsigned long long>(at));
        return 1;
    }
    std::printf(
        "passed: %llu programs, %llu batches, %llu row operations, %llu full comparisons, "
        "%llu damaged files\n",
        static_cast<unsigned long long>(tally.programs),
        static_cast<unsigned long long>(tally.batches), static_cast<unsigned long long>(tally.rows),
        static_cast<unsigned long long>(tally.checks),
        static_cast<unsigned long long>(tally.mutations));
    return 0;
}
