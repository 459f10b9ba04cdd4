// What the programs of other tables share: keys, the clock, and the rows that report.py reads. Each
// program gets the sizes as NAME ROWS NAME ROWS ... and stores int64 keys with one int64 value.
#pragma once

#include <cuda_runtime.h>
#include <thrust/device_vector.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "gpu/rows.hpp"
#include "tensorhash/step/hash.hpp"

namespace th_gpu {

inline void require_success(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(2);
    }
}

class PeerClock {
public:
    static constexpr bool kMeasures = true;

    PeerClock() {
        require_success(cudaStreamCreate(&stream));
        require_success(cudaEventCreate(&begin_));
        require_success(cudaEventCreate(&end_));
    }
    template <class Work>
    double seconds(Work const& work) {
        float milliseconds = 0;
        require_success(cudaEventRecord(begin_, stream));
        work();
        require_success(cudaEventRecord(end_, stream));
        require_success(cudaEventSynchronize(end_));
        require_success(cudaEventElapsedTime(&milliseconds, begin_, end_));
        return milliseconds / 1e3;
    }
    cudaStream_t stream = nullptr;

private:
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

/// The keys of tables.hpp. The values are the keys.
inline thrust::device_vector<std::int64_t> peer_keys(std::uint64_t rows, std::uint64_t batch) {
    std::vector<std::int64_t> keys(rows);
    for (std::uint64_t i = 0; i < rows; ++i) {
        keys[i] = static_cast<std::int64_t>(tensorhash::step::mix(batch << 40 | i));
    }
    return keys;
}

/// Measures a table: make(rows) gives an empty one with insert(keys, rows), find(keys, rows) and
/// clear(), all on the stream of the clock.
template <class Make>
void measure_peer(PeerClock& clock, char const* name, int argc, char** argv, Make const& make) {
    for (int i = 1; i + 1 < argc; i += 2) {
        auto const rows = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
        auto const keys = peer_keys(rows, 0);
        auto const others = peer_keys(rows, 1);
        auto const* const present = thrust::raw_pointer_cast(keys.data());
        auto const* const absent = thrust::raw_pointer_cast(others.data());
        auto table = make(rows);
        Measured what{name, argv[i], "insert", rows};
        measure(clock, what, [&] { table.clear(); }, [&] { table.insert(present, rows); });
        what.operation = "find, present keys";
        measure(clock, what, [] {}, [&] { table.find(present, rows); });
        what.operation = "find, absent keys";
        measure(clock, what, [] {}, [&] { table.find(absent, rows); });
    }
}

}  // namespace th_gpu
