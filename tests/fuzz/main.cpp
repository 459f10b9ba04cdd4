// Random programs against the oracle, then damaged files:
//   tensorhash_fuzz [--seed S] [--seeds N] [--programs P | --rows R] [--files F]
// runs P programs, or enough programs for R row operations, for each of N seeds from S on, then
// reads F damaged files. Program i of a seed runs with seed + i; a failure prints how to repeat it.
#include <stdlib.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

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

using Number = unsigned long long;

constexpr int kBatches = 100;                       // calls per program
constexpr std::uint64_t kBetweenSeeds = 1'000'000;  // most programs per seed

// Sanitized builds are ten times slower; the full count is the release build's.
struct Options {
    std::uint64_t seed = 1;
    std::uint64_t seeds = 1;
    std::uint64_t rows = 0;  // 0: count programs instead
#if TH_TEST_SANITIZED
    std::uint64_t programs = 40;
    std::uint64_t files = 3000;
#else
    std::uint64_t programs = 260;
    std::uint64_t files = 15000;
#endif
};

std::uint64_t to_number(std::string const& option, char const* text) {
    char* end = nullptr;
    std::uint64_t const number = text ? std::strtoull(text, &end, 10) : 0;
    if (!text || end == text || *end != '\0')
        throw std::runtime_error(option + ": expected a number, got " + (text ? text : "nothing"));
    return number;
}

Options parse(char** argument) {
    Options options;
    std::map<std::string, std::uint64_t*> const known = {{"--seed", &options.seed},
                                                         {"--seeds", &options.seeds},
                                                         {"--programs", &options.programs},
                                                         {"--rows", &options.rows},
                                                         {"--files", &options.files}};
    for (; *argument; argument += 2) {
        auto const option = known.find(*argument);
        if (option == known.end())
            throw std::runtime_error(std::string(*argument) +
                                     ": expected --seed, --seeds, --programs, --rows or --files");
        *option->second = to_number(*argument, argument[1]);
    }
    return options;
}

/// The arguments that repeat what is running now.
std::string repeat;

void run_programs(Options const& options, th_test::Scratch const& scratch, th_test::Tally& tally) {
    for (std::uint64_t s = 0; s < options.seeds; ++s) {
        std::uint64_t const first = options.seed + s * kBetweenSeeds;
        std::uint64_t const rows = tally.rows;
        auto const goes_on = [&](std::uint64_t i) {
            return options.rows ? tally.rows - rows < options.rows : i < options.programs;
        };
        for (std::uint64_t i = 0; goes_on(i); ++i) {
            repeat = "--seed " + std::to_string(first + i) + " --programs 1 --files 0";
            th_test::fuzz_table(first + i, kBatches, scratch, tally);
        }
    }
}

void run_files(Options const& options, th_test::Scratch const& scratch, th_test::Tally& tally) {
    repeat = "--seed " + std::to_string(options.seed) + " --programs 0 --files " +
             std::to_string(options.files);
    std::uint64_t const sealed = options.files / 3;
    th_test::fuzz_files(options.seed, options.files - sealed, scratch, tally);
    th_test::fuzz_sealed_files(options.seed, sealed, tally);
}

}  // namespace

int main(int, char** arguments) {
    th_test::Tally tally;
    try {
        Options const options = parse(arguments + 1);
        std::printf("tensorhash_fuzz: seed %llu, %llu seed(s), %llu damaged files\n",
                    static_cast<Number>(options.seed), static_cast<Number>(options.seeds),
                    static_cast<Number>(options.files));
        std::fflush(stdout);
        th_test::Scratch scratch;
        run_programs(options, scratch, tally);
        run_files(options, scratch, tally);
    } catch (std::exception const& error) {
        std::printf("FAILED: %s\n", error.what());
        if (!repeat.empty()) std::printf("to repeat: tensorhash_fuzz %s\n", repeat.c_str());
        return 1;
    }
    std::printf(
        "passed: %llu programs, %llu batches, %llu row operations, %llu full comparisons, "
        "%llu damaged files\n",
        static_cast<Number>(tally.programs), static_cast<Number>(tally.batches),
        static_cast<Number>(tally.rows), static_cast<Number>(tally.checks),
        static_cast<Number>(tally.mutations));
    return 0;
}
