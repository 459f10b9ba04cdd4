// CUDA's words for clang, which compiles device code to PTX without NVIDIA's headers. Included
// before every source.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ __inline__ __attribute__((always_inline))

// clang has these operations under other names. It gives them the scope .sys, so this PTX cannot
// show a scope that is too narrow.
#define __NV_ATOMIC_RELAXED __ATOMIC_RELAXED
#define __NV_THREAD_SCOPE_DEVICE __MEMORY_SCOPE_DEVICE
#define __nv_atomic_load_n __scoped_atomic_load_n
#define __nv_atomic_store_n __scoped_atomic_store_n
#define __nv_atomic_compare_exchange_n __scoped_atomic_compare_exchange_n
#define __nv_atomic_fetch_add __scoped_atomic_fetch_add
#define __nv_atomic_fetch_and __scoped_atomic_fetch_and
#define __nv_atomic_fetch_or __scoped_atomic_fetch_or
#define __nv_atomic_fetch_min __scoped_atomic_fetch_min
#define __nv_atomic_fetch_max __scoped_atomic_fetch_max

// clang's wrapper of <new> calls malloc and free, which NVIDIA's headers would declare for devices.
#include <stdlib.h>

// The names that a user's kernel has for its place in the grid.
struct OnlyX {
    unsigned x;
};
#define threadIdx (OnlyX{static_cast<unsigned>(__nvvm_read_ptx_sreg_tid_x())})
#define blockIdx (OnlyX{static_cast<unsigned>(__nvvm_read_ptx_sreg_ctaid_x())})
#define blockDim (OnlyX{static_cast<unsigned>(__nvvm_read_ptx_sreg_ntid_x())})
#define gridDim (OnlyX{static_cast<unsigned>(__nvvm_read_ptx_sreg_nctaid_x())})

static __device__ __forceinline__ int __ffs(int bits) { return __builtin_ffs(bits); }
