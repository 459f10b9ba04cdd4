// The match functions of a bucket against a naive loop: the scalar form, for any target.
#include <gtest/gtest.h>

#include <cstdint>

#undef __AVX2__
#undef __SSE4_1__
#define TH_ISA snapshot_generic
#define TH_SNAPSHOT_LEVEL generic_level
#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/snapshot.hpp"

#include "unit/step/snapshot_body.hpp"

TEST(Snapshots, the_scalar_form_matches_the_naive_loop) {
    EXPECT_EQ(th_test::generic_level::wrong_buckets(20000), 0);
}
