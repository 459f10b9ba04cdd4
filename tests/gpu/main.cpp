// The part of `make gpu` that measures: facts on the device, CUB beside the reference loops, and
// tables with 1, 4 and 8 lanes per row. report.py makes tables of the output. Compiled twice: for a
// GPU, and for the fiber emulator.
//   usage: tensorhash_gpu ID
#if defined(TH_GPU_EMULATED)
#include "gpu/emulated_machine.hpp"
#else
#include "gpu/cuda_machine.hpp"
#endif

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "gpu/primitives.hpp"
#include "gpu/tables.hpp"

namespace th_gpu {
namespace {

#if defined(TH_GPU_EMULATED)
using Machine = EmulatedMachine;
#else
using Machine = CudaMachine;
#endif

bool run(int id) {
    Machine machine(id);
    for (auto const& [name, text] : machine.describe()) print_fact(name, text);
    bool const right = check_primitives(machine.queue(), Machine::kPrimitives,
                                        Machine::kMeasures ? 10'000'000 : 20'000);
    for (TableSize const& size : table_sizes(machine)) {
        for (std::uint32_t const key_bytes : {8u, 16u}) {
            measure_lanes<1>(machine, size, key_bytes);
            measure_lanes<4>(machine, size, key_bytes);
            measure_lanes<8>(machine, size, key_bytes);
        }
        measure_table(machine, size);
    }
    return right;
}

}  // namespace
}  // namespace th_gpu

int main(int argc, char** argv) try {
    return th_gpu::run(argc > 1 ? std::atoi(argv[1]) : 0) ? 0 : 1;
} catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
