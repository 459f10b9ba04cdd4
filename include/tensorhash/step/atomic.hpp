// Two ways to touch memory of the index: shared with other threads (atomic), or alone (plain).
#pragma once

#include "tensorhash/step/platform.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// Two adjacent words at a multiple of 16 bytes, which device code reads with one load. Each word is
/// read atomically, the pair is not.
struct alignas(16) WordPair {
    std::uint64_t first;
    std::uint64_t second;
};

/// Other threads work on the same lines. Relaxed orders suffice: a word carries its whole meaning.
struct Shared {
    static constexpr bool kShared = true;

    template <class T>
    static TH_STEP T load(T const* p) {
#if defined(__CUDA_ARCH__)
        return __nv_atomic_load_n(const_cast<T*>(p), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
#else
        TH_SWITCH_POINT();
        return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
    }

    template <class T>
    static TH_STEP void store(T* p, T value) {
#if defined(__CUDA_ARCH__)
        __nv_atomic_store_n(p, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
#else
        TH_SWITCH_POINT();
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
        TH_SWITCH_POINT();
        return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
#endif
    }

    /// Relaxed, as `load`.
    static TH_STEP WordPair load_pair(std::uint64_t const* p) {
#if defined(__CUDA_ARCH__)
        WordPair pair;
        asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
                     : "=l"(pair.first), "=l"(pair.second)
                     : "l"(p)
                     : "memory");
        return pair;
#else
        return {load(p), load(p + 1)};
#endif
    }

    /// Sets `*p` to `value` if that is larger, and returns what was there. Relaxed. Most callers find
    /// a larger value, so the load comes first. On a GPU an exchange loop would be quadratic: the
    /// threads of a warp that meet at one key would fail one after the other.
    static TH_STEP std::uint32_t raise(std::uint32_t* p, std::uint32_t value) {
        std::uint32_t seen = load(p);
#if defined(__CUDA_ARCH__)
        if (seen < value) {
            seen = __nv_atomic_fetch_max(p, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
        }
#else
        while (seen < value && !cas(p, seen, value)) {
        }
#endif
        return seen;
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
    static TH_STEP WordPair load_pair(std::uint64_t const* p) {
#if defined(__CUDA_ARCH__)
        return *reinterpret_cast<WordPair const*>(p);
#else
        return {p[0], p[1]};
#endif
    }
    static TH_STEP std::uint32_t raise(std::uint32_t* p, std::uint32_t value) {
        std::uint32_t const seen = *p;
        if (seen < value) {
            *p = value;
        }
        return seen;
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
