// What the program prints: rows of words with tabs between them, which report.py makes a table of.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace th_gpu {

inline void print_fact(std::string const& name, std::string const& text) {
    std::printf("fact\t%s\t%s\n", name.c_str(), text.c_str());
}
inline void print_check(std::string const& name, bool passed) {
    std::printf("check\t%s\t%s\n", name.c_str(), passed ? "passed" : "FAILED");
}

/// What was measured: a contender's operation on a table.
struct Measured {
    std::string contender;
    std::string table;
    std::string operation;
    std::uint64_t rows;
};

/// The median of seven rounds, after one to warm up. `prepare` is not measured. A machine that
/// cannot measure runs one round and prints no time.
template <class Machine, class Prepare, class Work>
void measure(Machine& machine, Measured const& what, Prepare const& prepare, Work const& work) {
    std::array<double, 7> rounds{};
    std::string time = "-";
    prepare();
    machine.seconds(work);
    if constexpr (Machine::kMeasures) {
        for (double& round : rounds) {
            prepare();
            round = machine.seconds(work);
        }
        std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
        time = std::to_string(rounds[3] * 1e6);
    }
    std::printf("time\t%s\t%s\t%s\t%llu\t%s\n", what.contender.c_str(), what.table.c_str(),
                what.operation.c_str(), static_cast<unsigned long long>(what.rows), time.c_str());
}

}  // namespace th_gpu
