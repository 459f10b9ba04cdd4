// Two ways to touch memory of the index: shared with other threads (atomic), or alone (plain).
#pragma once

#include "tensorhash/step/platform.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// Other threads work on the same lines. Relaxed orders suffice: a word carries its whole meaning.
struct Shared {
    static constexpr bool kShared = true;

    template <class T>
    static TH_STEP T load(T const* p) {
#if defined(__CUDA_ARCH__)
        return __nv_atomic_load_n(const_cast<T*>(p), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
#else
        return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
    }

    template <class T>
    static TH_STEP void store(T* p, T value) {
#if defined(__CUDA_ARCH__)
        __nv_atomic_store_n(p, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
#else
        __atomic_store_n(p, value, __ATOMIC_RELAXED);
#endif
    }

    /// True if `*p` was `expected` and is now `desired`; else `expected` is what was there. Success and failure: relaxed.
    template <class T>
    static TH_STEP bool cas(T* p, T& expected, T desired) {
#if defined(__CUDA_ARCH__)
        return __nv_atomic_compare_exchange_n(p, &expected, desired, false, __NV_ATOMIC_RELAXED,
                                              __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
#else
        return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
#endif
    }
};

/// One thread has the index to itself, everybody only reads, or nobody touches what another writes: the same verbs
/// without the bus.
struct Sole {
    static constexpr bool kShared = false;

    template <class T>
    static TH_STEP T load(T const* p) {
        return *p;
    }
    template <class T>
    static TH_STEP void store(T* p, T value) {
        *p = value;
    }
    /// Everybody who exchanges has seen `expected` there just before, and nobody else writes: it needs no second look.
    template <class T>
    static TH_STEP bool cas(T* p, [[maybe_unused]] T const& expected, T desired) {
        assert(*p == expected);
        *p = desired;
        return true;
    }
};

/// `*p |= bits`, without an exchange where they are set.
template <class Access, class T>
TH_STEP void set_bits(T* p, T bits) {
    T seen = Access::load(p);
    while ((seen & bits) != bits && !Access::cas(p, seen, seen | bits)) {
    }
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
