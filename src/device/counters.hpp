// Read-modify-write operations on words that many threads share. Relaxed: the results are read by
// later launches, which a stream orders.
#pragma once

#include <cstdint>

#include "device/grid.hpp"
#include "tensorhash/step/atomic.hpp"

namespace tensorhash::device {

#if defined(__CUDA_ARCH__)
#define TH_FETCH(operation, at, value) \
    __nv_atomic_fetch_##operation(at, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)
#elif defined(__CUDACC__)
#define TH_FETCH(operation, at, value) (*(at))
#else
#define TH_FETCH(operation, at, value) \
    (TH_SWITCH_POINT(), __atomic_fetch_##operation(at, value, __ATOMIC_RELAXED))
#endif

/// `*at += value`; unsigned integers of 4 or 8 bytes.
template <class T>
TH_STEP T fetch_add(T* at, T value) {
    return TH_FETCH(add, at, value);
}
/// `*at &= bits`; returns the old value.
TH_STEP std::uint32_t fetch_and(std::uint32_t* at, std::uint32_t bits) {
    return TH_FETCH(and, at, bits);
}
/// `*at |= bits`; returns the old value.
TH_STEP std::uint32_t fetch_or(std::uint32_t* at, std::uint32_t bits) {
    return TH_FETCH(or, at, bits);
}

#if defined(__CUDACC__)
/// `*at = min(*at, value)`; integers of 4 or 8 bytes.
template <class T>
TH_STEP T fetch_min(T* at, T value) {
    return TH_FETCH(min, at, value);
}
template <class T>
TH_STEP T fetch_max(T* at, T value) {
    return TH_FETCH(max, at, value);
}
#else
/// `*at = min(*at, value)`; integers of 4 or 8 bytes. Host compilers lack this operation.
template <class T>
TH_STEP T fetch_min(T* at, T value) {
    T seen = step::Shared::load(at);
    while (value < seen && !step::Shared::cas(at, seen, value)) {
    }
    return seen;
}
template <class T>
TH_STEP T fetch_max(T* at, T value) {
    T seen = step::Shared::load(at);
    while (seen < value && !step::Shared::cas(at, seen, value)) {
    }
    return seen;
}
#endif

/// Adds the values of all lanes with one atomic operation per warp. Collective over the warp.
TH_STEP void add_over_warp(std::uint32_t* at, std::uint32_t value) {
    std::uint32_t const sum = Warp::sum(value);
    if (Warp::rank() == 0 && sum != 0) {
        fetch_add(at, sum);
    }
}

/// Sets a flag that many threads may set.
TH_STEP void raise_flag(std::uint32_t* flag) { step::Shared::store(flag, 1u); }

}  // namespace tensorhash::device
