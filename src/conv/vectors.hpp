// One vector register of the level that this file is compiled for, and the shapes of the loops'
// blocks: as many sums as fit into the registers, beside the operands.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tensorhash/step/platform.hpp"

namespace tensorhash::conv {
inline namespace TH_STEP_NAMESPACE {

template <class T>
struct Vector;

#if defined(__AVX512F__)

template <>
struct Vector<float> {
    using Type = __m512;
    static Type zero() { return _mm512_setzero_ps(); }
    static Type load(float const* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, Type x) { _mm512_storeu_ps(p, x); }
    static Type all(float x) { return _mm512_set1_ps(x); }
    static Type add(Type a, Type b) { return _mm512_add_ps(a, b); }
    static Type multiply_add(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
};

template <>
struct Vector<double> {
    using Type = __m512d;
    static Type zero() { return _mm512_setzero_pd(); }
    static Type load(double const* p) { return _mm512_loadu_pd(p); }
    static void store(double* p, Type x) { _mm512_storeu_pd(p, x); }
    static Type all(double x) { return _mm512_set1_pd(x); }
    static Type add(Type a, Type b) { return _mm512_add_pd(a, b); }
    static Type multiply_add(Type a, Type b, Type c) { return _mm512_fmadd_pd(a, b, c); }
};

// 32 registers.
inline constexpr int kMostVectors = 4;
constexpr int rows_of_block(int vectors) {
    return vectors == 1 ? 12 : vectors == 2 ? 8 : vectors == 3 ? 6 : 4;
}
inline constexpr int kOuterRows = 8;
inline constexpr int kNarrowOuterRows = 16;

#elif defined(__AVX2__) && defined(__FMA__)

template <>
struct Vector<float> {
    using Type = __m256;
    static Type zero() { return _mm256_setzero_ps(); }
    static Type load(float const* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, Type x) { _mm256_storeu_ps(p, x); }
    static Type all(float x) { return _mm256_set1_ps(x); }
    static Type add(Type a, Type b) { return _mm256_add_ps(a, b); }
    static Type multiply_add(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
};

template <>
struct Vector<double> {
    using Type = __m256d;
    static Type zero() { return _mm256_setzero_pd(); }
    static Type load(double const* p) { return _mm256_loadu_pd(p); }
    static void store(double* p, Type x) { _mm256_storeu_pd(p, x); }
    static Type all(double x) { return _mm256_set1_pd(x); }
    static Type add(Type a, Type b) { return _mm256_add_pd(a, b); }
    static Type multiply_add(Type a, Type b, Type c) { return _mm256_fmadd_pd(a, b, c); }
};

// 16 registers.
inline constexpr int kMostVectors = 2;
constexpr int rows_of_block(int vectors) { return vectors == 1 ? 8 : 6; }
inline constexpr int kOuterRows = 4;
inline constexpr int kNarrowOuterRows = 8;

#else

// 16 bytes, which every machine has. Product and sum are rounded separately.
template <class T>
struct Vector {
    using Type __attribute__((vector_size(16))) = T;
    static Type zero() { return Type{}; }
    static Type load(T const* p) {
        Type x;
        std::memcpy(&x, p, sizeof(x));
        return x;
    }
    static void store(T* p, Type x) { std::memcpy(p, &x, sizeof(x)); }
    static Type all(T x) {
        if constexpr (sizeof(T) == 4) {
            return Type{x, x, x, x};
        } else {
            return Type{x, x};
        }
    }
    static Type add(Type a, Type b) { return a + b; }
    static Type multiply_add(Type a, Type b, Type c) { return a * b + c; }
};

inline constexpr int kMostVectors = 2;
constexpr int rows_of_block(int vectors) { return vectors == 1 ? 8 : 4; }
inline constexpr int kOuterRows = 4;
inline constexpr int kNarrowOuterRows = 8;

#endif

template <class T>
inline constexpr std::size_t kLanes = sizeof(typename Vector<T>::Type) / sizeof(T);
template <class T>
inline constexpr std::size_t kBlockColumns = kLanes<T> * static_cast<std::size_t>(kMostVectors);

/// Elements in a cache line.
template <class T>
inline constexpr std::size_t kLine = 64 / sizeof(T);

// GCC 12 keeps the sums of a block in memory unless these loops are unrolled: 2.5 times slower.
#define TH_UNROLL _Pragma("GCC unroll 16")

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::conv
