// The match functions of a bucket against a naive loop: the SSE4.1 form.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <smmintrin.h>

#pragma GCC push_options
#pragma GCC target("sse4.1")
// The pragma only reaches the compiler; the preprocessor needs the macros.
#undef __AVX2__
#undef __SSE4_1__
#define __SSE4_1__ 1
#define TH_ISA snapshot_sse41
#define TH_SNAPSHOT_LEVEL sse41_level
#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/snapshot.hpp"

#include "unit/step/snapshot_body.hpp"
#pragma GCC pop_options

// ThreadSanitizer builds use the scalar form everywhere.
#if !defined(__SANITIZE_THREAD__)
static_assert(TH_SIMD_SSE41 == 1, "this file is about the SSE4.1 form");
#endif

TEST(Snapshots, the_sse41_form_matches_the_naive_loop) {
    if (!__builtin_cpu_supports("sse4.1")) GTEST_SKIP() << "this machine has no SSE4.1";
    EXPECT_EQ(th_test::sse41_level::wrong_buckets(20000), 0);
}
#endif
