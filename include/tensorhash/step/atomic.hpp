// Access to index memory: Shared (atomic, because other threads use it too) or Exclusive (plain).
#pragma once

#include "tensorhash/step/platform.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Two adjacent words, aligned to 16 bytes so that device code reads them with one load. Each word
/// is read atomically; the pair is not.
struct alignas(16) WordPair {
    std::uint64_t first;
    std::uint64_t second;
};

/// Other threads access the same buckets. Relaxed order suffices: each word is complete in itself.
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

    /// If `*p` equals `expected`, stores `desired` and returns true. Otherwise loads `*p` into
    /// `expected`. Relaxed on success and on failure.
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

    /// Relaxed, like `load`.
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

    /// Raises `*p` to at least `value` and returns the old value. Relaxed. Loads first, because
    /// most callers find a larger value. On a GPU a CAS loop would be quadratic: the threads of a
    /// warp that share a key would fail one after the other.
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

/// For memory that one thread owns, that all threads only read, or that no two threads share:
/// plain loads and stores.
struct Exclusive {
    static constexpr bool kShared = false;

    template <class T>
    static TH_STEP T load(T const* p) {
        return *p;
    }
    template <class T>
    static TH_STEP void store(T* p, T value) {
        *p = value;
    }
    /// Callers have just loaded `expected` and no other thread writes, so this need not compare.
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

/// `*p |= bits`, without a CAS if the bits are already set.
template <class Access, class T>
TH_STEP void set_bits(T* p, T bits) {
    T seen = Access::load(p);
    while ((seen & bits) != bits && !Access::cas(p, seen, seen | bits)) {
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
