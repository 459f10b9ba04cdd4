// What a kernel body may ask of the machine that runs it: its place in the grid, a tile of lanes,
// the barrier of its block. Only this header and counters.hpp contain CUDA's words. A body runs on
// a GPU, as interpreted PTX, or in a host program that defines host_grid.hpp.
#pragma once

#include <cstdint>

// The steps must take their device form, also on a host. So this header comes before them.
#if !defined(__CUDACC__)
#include "device/host_grid.hpp"
#if !defined(TH_DEVICE_STEPS)
#define TH_DEVICE_STEPS 1
#endif
#if !defined(TH_SWITCH_POINT)
#define TH_SWITCH_POINT() ::tensorhash::device::host::switch_point()
#endif
#endif

#include "tensorhash/step/platform.hpp"

namespace tensorhash::device {

static_assert(step::kDeviceSteps, "include device/grid.hpp before the headers of the steps");

inline constexpr std::uint32_t kWarp = 32;

// Without NVIDIA's headers clang knows the grid by other names. nvcc also compiles every body for
// the host, where it never runs.
#if defined(__CUDA_ARCH__) && defined(__clang__)
#define TH_ON_GRID(cuda, clang, host) static_cast<std::uint32_t>(clang)
#elif defined(__CUDA_ARCH__)
#define TH_ON_GRID(cuda, clang, host) static_cast<std::uint32_t>(cuda)
#elif defined(__CUDACC__)
#define TH_ON_GRID(cuda, clang, host) 1u
#else
#define TH_ON_GRID(cuda, clang, host) (host)
#endif

/// The running thread. Grids and blocks have one dimension.
struct Thread {
    TH_STEP static std::uint32_t in_block() {
        return TH_ON_GRID(threadIdx.x, __nvvm_read_ptx_sreg_tid_x(), host::place().thread);
    }
    TH_STEP static std::uint32_t block() {
        return TH_ON_GRID(blockIdx.x, __nvvm_read_ptx_sreg_ctaid_x(), host::place().block);
    }
    TH_STEP static std::uint32_t block_size() {
        return TH_ON_GRID(blockDim.x, __nvvm_read_ptx_sreg_ntid_x(), host::place().block_size);
    }
    TH_STEP static std::uint32_t blocks() {
        return TH_ON_GRID(gridDim.x, __nvvm_read_ptx_sreg_nctaid_x(), host::place().blocks);
    }
    TH_STEP static std::uint64_t in_grid() {
        return static_cast<std::uint64_t>(block()) * block_size() + in_block();
    }
    TH_STEP static std::uint64_t grid_size() {
        return static_cast<std::uint64_t>(blocks()) * block_size();
    }
};

/// Waits for all threads of the block and orders their memory.
TH_STEP void sync_block() {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#elif !defined(__CUDACC__)
    host::sync_block();
#endif
}

/// N neighbouring lanes of a warp. Every call except rank() is collective: all lanes of the tile
/// make it. ballot() and shuffle() do not order memory; sync() does.
template <std::uint32_t N>
struct Tile {
    static_assert(N >= 1 && N <= kWarp && (N & (N - 1)) == 0);

    TH_STEP static std::uint32_t rank() { return Thread::in_block() & (N - 1); }

    /// One bit per lane of the tile, lane 0 lowest.
    TH_STEP static std::uint32_t ballot(bool yes) {
        if constexpr (N == 1) {
            return yes ? 1u : 0u;
        } else {
            std::uint32_t const warp =
                TH_ON_GRID(__ballot_sync(mask(), yes), __nvvm_vote_ballot_sync(mask(), yes),
                           host::ballot(mask(), yes));
            return warp >> first_lane() & kLanes;
        }
    }

    /// The value of lane `from` of the tile.
    TH_STEP static std::uint32_t shuffle(std::uint32_t value, [[maybe_unused]] std::uint32_t from) {
        if constexpr (N == 1) {
            return value;
        } else {
            return TH_ON_GRID(__shfl_sync(mask(), value, static_cast<int>(first_lane() + from)),
                              __nvvm_shfl_sync_idx_i32(mask(), static_cast<int>(value),
                                                       static_cast<int>(first_lane() + from), 31),
                              host::shuffle(mask(), value, first_lane() + from));
        }
    }
    TH_STEP static std::uint64_t shuffle(std::uint64_t value, std::uint32_t from) {
        std::uint64_t const high = shuffle(static_cast<std::uint32_t>(value >> 32), from);
        return high << 32 | shuffle(static_cast<std::uint32_t>(value), from);
    }

    TH_STEP static void sync() {
        if constexpr (N > 1) {
#if defined(__CUDA_ARCH__) && defined(__clang__)
            __nvvm_bar_warp_sync(mask());
#elif defined(__CUDA_ARCH__)
            __syncwarp(mask());
#elif !defined(__CUDACC__)
            host::sync_lanes(mask());
#endif
        }
    }

    /// The sum over all lanes, in every lane.
    TH_STEP static std::uint32_t sum(std::uint32_t value) {
        for (std::uint32_t step = N / 2; step > 0; step /= 2) {
            value += shuffle(value, rank() ^ step);
        }
        return value;
    }

private:
    static constexpr std::uint32_t kLanes = N == kWarp ? ~0u : (1u << (N % kWarp)) - 1;

    TH_STEP static std::uint32_t first_lane() {
        return Thread::in_block() & (kWarp - 1) & ~(N - 1);
    }
    TH_STEP static std::uint32_t mask() { return kLanes << first_lane(); }
};

using Warp = Tile<kWarp>;

TH_STEP std::uint32_t count_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__) && !defined(__clang__)
    return static_cast<std::uint32_t>(__popc(bits));
#else
    return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
}

/// Correctly rounded, as on the CPU.
TH_STEP float square_root(float x) {
#if defined(__CUDA_ARCH__) && defined(__clang__)
    return __nvvm_sqrt_rn_f(x);
#elif defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}
TH_STEP double square_root(double x) {
#if defined(__CUDA_ARCH__) && defined(__clang__)
    return __nvvm_sqrt_rn_d(x);
#elif defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

/// The largest whole number that is not above x.
TH_STEP double round_down(double x) {
#if defined(__CUDA_ARCH__) && !defined(__clang__)
    return ::floor(x);
#else
    return __builtin_floor(x);
#endif
}

/// The `Shared` of bodies that need no block memory.
struct NoShared {};

/// Calls body(row) for each of this thread's rows.
template <class Body>
TH_STEP void for_rows(std::uint64_t rows, Body const& body) {
    for (std::uint64_t row = Thread::in_grid(); row < rows; row += Thread::grid_size()) {
        body(row);
    }
}

}  // namespace tensorhash::device
