// The match functions of a bucket against a naive loop: the AVX2 form.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2")
// The pragma only reaches the compiler; the preprocessor needs the macros.
#undef __AVX2__
#define __AVX2__ 1
#define TH_ISA snapshot_avx2
#define TH_SNAPSHOT_LEVEL avx2_level
#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/snapshot.hpp"

#include "unit/step/snapshot_body.hpp"
#pragma GCC pop_options

// ThreadSanitizer builds use the scalar form everywhere.
#if !defined(__SANITIZE_THREAD__)
static_assert(TH_SIMD_AVX2 == 1, "this file is about the AVX2 form");
#endif

TEST(Snapshots, the_avx2_form_matches_the_naive_loop) {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
    EXPECT_EQ(th_test::avx2_level::wrong_buckets(20000), 0);
}
#endif
