// The fuzzers of this folder. Each throws a sentence at the first error that it finds.
#pragma once

#include <cstdint>
#include <string>

namespace th_test {

/// A folder for files, removed at the end.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(Scratch const&) = delete;
    Scratch& operator=(Scratch const&) = delete;
    std::string file(std::string const& name) const { return folder_ + "/" + name; }

private:
    std::string folder_;
};

struct Tally {
    std::uint64_t programs = 0;
    std::uint64_t batches = 0;
    std::uint64_t rows = 0;
    std::uint64_t checks = 0;
    std::uint64_t mutations = 0;
};

/// One random program of `batches` calls on one table, against the oracle.
void fuzz_table(std::uint64_t seed, int batches, Scratch const& scratch, Tally& tally);

/// Damaged files: reading must always fail.
void fuzz_files(std::uint64_t seed, std::uint64_t mutations, Scratch const& scratch, Tally& tally);

/// Damaged files of all kinds of tables, with valid checksums: reading must fail or give a sound
/// table that matches the file.
void fuzz_sealed_files(std::uint64_t seed, std::uint64_t mutations, Tally& tally);

}  // namespace th_test
