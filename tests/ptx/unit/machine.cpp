// How threads run: schedules, memory, barriers, votes and shuffles.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ptx/unit/small_program.hpp"

namespace th_ptx {
namespace {

bool contains(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

/// %rd3 = %rd1 + 4 * thread.
std::string const kMyWord = "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3;\n";

TEST(PtxMachine, EveryThreadOfEveryBlockRuns) {
    for (std::uint32_t const blocks : {1u, 3u, 9u}) {
        SmallDevice device;
        device.grid = {blocks, 33};
        std::size_t const threads = blocks * 33;
        std::uint32_t* const out = device.unwritten_words(threads);
        device.run(kMyWord + "st.global.u32 [%rd3], %r1; ret;", out);
        std::vector<std::uint32_t> expected(threads);
        std::iota(expected.begin(), expected.end(), 0u);
        EXPECT_EQ(device.read(out, threads), expected);
        EXPECT_TRUE(device.races().empty());
    }
}

TEST(PtxMachine, TheSeedDecidesTheSchedule) {
    auto const order = [](std::uint64_t seed) {
        SmallDevice device;
        device.options.seed = seed;
        device.grid = {2, 32};
        std::uint32_t* const turn = device.words({0});
        std::uint32_t* const out = device.unwritten_words(64);
        device.run(
            "atom.global.add.u32 %r5, [%rd1], 1; mul.wide.u32 %rd3, %r1, 4;"
            "add.s64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r5; ret;",
            turn, out);
        return device.read(out, 64);
    };
    EXPECT_EQ(order(1), order(1));
    EXPECT_NE(order(1), order(2));
}

/// Between a load and a store of one thread, another may write: updates are lost.
TEST(PtxMachine, ThreadsChangeAfterAnyInstruction) {
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SmallDevice device;
        device.options.seed = seed;
        std::uint32_t* const count = device.words({0});
        device.run(
            "ld.relaxed.gpu.global.u32 %r5, [%rd1]; add.u32 %r5, %r5, 1;"
            "st.relaxed.gpu.global.u32 [%rd1], %r5; ret;",
            count);
        wrong += device.read(count, 1).front() != 32 ? 1 : 0;
    }
    EXPECT_EQ(wrong, 10);
}

TEST(PtxMachine, AtomicsAreAtomic) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SmallDevice device;
        device.options.seed = seed;
        device.grid = {3, 40};
        std::uint32_t* const out = device.words({0, 0, 0xffffffff, 0, 0, 0});
        device.run(R"(red.global.add.u32 [%rd1], 1;
                      atom.global.max.u32 %r5, [%rd1+4], %r1;
                      atom.global.and.b32 %r5, [%rd1+8], -2;
                      atom.global.or.b32 %r5, [%rd1+12], 4;
                      atom.relaxed.sys.global.cas.b64 %rd5, [%rd1+16], 0, 7;
                      ret;)",
                   out);
        EXPECT_EQ(device.read(out, 6), (std::vector<std::uint32_t>{120, 119, 0xfffffffe, 4, 7, 0}));
        EXPECT_TRUE(device.races().empty());
    }
}

/// Slices are longer than the program here, so only a pause can let another thread in between.
TEST(PtxMachine, PausesAfterAtomicsLetOthersRun) {
    auto const sum_of_increments_seen = [](std::uint32_t pause_one_in) {
        SmallDevice device;
        device.options.pause_one_in = pause_one_in;
        device.options.slice = 1'000'000;
        std::uint32_t* const counts = device.words({0, 0});
        do {
            ++device.options.seed;
            device.run(R"(atom.global.add.u32 %r5, [%rd1], 1;
                          ld.relaxed.gpu.global.u32 %r6, [%rd1];
                          sub.u32 %r6, %r6, %r5;
                          red.global.add.u32 [%rd1+4], %r6;
                          ret;)",
                       counts);
        } while (device.options.seed < 100);
        return device.read(counts, 2)[1];
    };
    EXPECT_GT(sum_of_increments_seen(1), 2 * sum_of_increments_seen(0));
}

TEST(PtxMachine, OutOfBoundsIsAnErrorWithItsLine) {
    SmallDevice device;
    std::uint32_t* const words = device.words(std::vector<std::uint32_t>(31));
    std::string const error = device.error_of(kMyWord + "st.global.u32 [%rd3], %r1;\nret;", words);
    EXPECT_TRUE(contains(error, "thread 31 of block 0")) << error;
    EXPECT_TRUE(contains(error, "line 20: [st.global.u32 [%rd3], %r1]")) << error;
    EXPECT_TRUE(contains(error, "out of bounds: 4 bytes, 124 bytes after the start")) << error;
}

TEST(PtxMachine, NullPointersAndMisalignedAddressesAreErrors) {
    SmallDevice device;
    EXPECT_TRUE(contains(device.error_of("ld.global.u32 %r5, [%rd1]; ret;"), "out of bounds"));
    EXPECT_TRUE(contains(device.error_of("ld.global.u32 %r5, [%rd1+2]; ret;", device.words({1, 2})),
                         "misaligned"));
    EXPECT_TRUE(contains(device.error_of("ld.global.v2.u64 {%rd3, %rd4}, [%rd1+8]; ret;",
                                         device.words({1, 2, 3, 4})),
                         "misaligned"));
}

TEST(PtxMachine, UnwrittenReadsAreErrors) {
    SmallDevice device;
    std::uint32_t* const words = device.unwritten_words(1);
    EXPECT_TRUE(contains(device.error_of("ld.global.u32 %r5, [%rd1]; ret;", words), "unwritten"));
    EXPECT_TRUE(
        contains(device.error_of("atom.global.add.u32 %r5, [%rd1], 1; ret;", words), "unwritten"));
    device.grid.block_size = 1;
    EXPECT_EQ(device.error_of("st.global.u32 [%rd1], 1; ld.global.u32 %r5, [%rd1]; ret;", words),
              "");
}

std::string const kSharedWord =
    ".shared .align 4 .b8 table[128];\n"
    "mul.lo.u32 %r6, %r4, 4; mov.u32 %r7, table; add.u32 %r6, %r6, %r7;\n";

TEST(PtxMachine, SharedMemoryBelongsToABlock) {
    SmallDevice device;
    device.grid = {5, 32};
    std::uint32_t* const out = device.unwritten_words(160);
    // Each thread writes its own word and reads its neighbour's.
    device.run(kSharedWord + kMyWord + R"(
                  st.shared.u32 [%r6], %r1;
                  bar.sync 0;
                  xor.b32 %r8, %r6, 4;
                  ld.shared.u32 %r9, [%r8];
                  st.global.u32 [%rd3], %r9;
                  ret;)",
               out);
    auto const values = device.read(out, 160);
    for (std::uint32_t i = 0; i < 160; ++i) EXPECT_EQ(values[i], i ^ 1);
    EXPECT_TRUE(device.races().empty());
}

TEST(PtxMachine, GenericAddressesReachSharedAndLocalMemory) {
    SmallDevice device;
    device.grid.block_size = 1;
    std::uint32_t* const out = device.words({0, 0});
    device.run(R"(.shared .align 4 .b8 x[8];
                  .local .align 4 .b8 y[8];
                  mov.u64 %rd3, x; cvta.shared.u64 %rd4, %rd3;
                  mov.u64 %rd5, y; cvta.local.u64 %rd6, %rd5;
                  st.u32 [%rd4+4], 11; st.u32 [%rd6+4], 22;
                  ld.shared.u32 %r5, [x+4]; ld.local.u32 %r6, [%rd5+4];
                  st.global.v2.u32 [%rd1], {%r5, %r6};
                  ret;)",
               out);
    EXPECT_EQ(device.read(out, 2), (std::vector<std::uint32_t>{11, 22}));
}

TEST(PtxMachine, SharedMemoryIsCheckedToo) {
    SmallDevice device;
    EXPECT_TRUE(contains(device.error_of(kSharedWord + "ld.shared.u32 %r5, [%r6]; ret;"),
                         "unwritten read: shared"));
    EXPECT_TRUE(contains(device.error_of(kSharedWord + "st.shared.u32 [%r6+4], 1; ret;"),
                         "out of bounds: 4 bytes at offset 128 of 128 bytes of shared memory"));
}

TEST(PtxMachine, EndlessLoopsRunOutOfBudget) {
    SmallDevice device;
    device.options.budget = 10'000;
    EXPECT_EQ(device.error_of("AGAIN: bra AGAIN;"),
              "small: endless loop: more than 10000 instructions");
}

TEST(PtxMachine, TrapsAndTablesAreObeyed) {
    SmallDevice device;
    EXPECT_TRUE(contains(device.error_of("trap; ret;"), "trap"));
    device.grid.block_size = 3;
    std::uint32_t* const out = device.unwritten_words(3);
    device.run(kMyWord + R"(
                  TABLE: .branchtargets A, B, A;
                  brx.idx %r1, TABLE;
                  A: st.global.u32 [%rd3], 100; ret;
                  B: st.global.u32 [%rd3], 200; ret;)",
               out);
    EXPECT_EQ(device.read(out, 3), (std::vector<std::uint32_t>{100, 200, 100}));
}

TEST(PtxMachine, ABarrierThatSomeThreadsMissIsAnError) {
    SmallDevice device;
    std::string const error =
        device.error_of("setp.lt.u32 %p1, %r1, 3; @%p1 ret; bar.sync 0; ret;");
    EXPECT_EQ(
        error,
        "small: barrier mismatch: of 32 threads 29 wait for the block, 0 wait for lanes and 3 "
        "have ended");
}

TEST(PtxMachine, TheLanesOfAWarpMustMeetAtOneBarrier) {
    SmallDevice device;
    std::string const error = device.error_of(
        "setp.lt.u32 %p1, %r1, 3; @%p1 bra OTHER; bar.sync 0; ret; OTHER: bar.sync 0; ret;");
    EXPECT_TRUE(contains(error, "barrier mismatch: threads of a warp wait at")) << error;
}

TEST(PtxMachine, VotesAndShufflesMoveValuesBetweenLanes) {
    SmallDevice device;
    device.grid = {1, 64};
    std::uint32_t* const out = device.unwritten_words(64);
    // Lane i gets the number of lane i + 1 of its tile of four, plus the votes of odd lanes.
    device.run(kMyWord + R"(and.b32 %r5, %r4, 1;
                  setp.ne.u32 %p1, %r5, 0;
                  vote.sync.ballot.b32 %r6, %p1, -1;
                  popc.b32 %r6, %r6;
                  shfl.sync.down.b32 %r7|%p2, %r1, 1, 0x1c1f, -1;
                  @!%p2 mov.u32 %r7, 1000;
                  vote.sync.any.pred %p3, !%p1, -1;
                  vote.sync.all.pred %p4, %p1, -1;
                  selp.b32 %r8, 100, 0, %p3;
                  selp.b32 %r9, 200, 0, %p4;
                  add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; add.u32 %r6, %r6, %r9;
                  st.global.u32 [%rd3], %r6;
                  ret;)",
               out);
    auto const values = device.read(out, 64);
    for (std::uint32_t i = 0; i < 64; ++i) {
        EXPECT_EQ(values[i], 16 + 100 + (i % 4 == 3 ? 1000 : i + 1)) << i;
    }
}

TEST(PtxMachine, MatchFindsEqualLanes) {
    SmallDevice device;
    std::uint32_t* const out = device.unwritten_words(32);
    device.run(kMyWord +
                   "and.b32 %r5, %r1, 7; match.any.sync.b32 %r6, %r5, -1;"
                   "st.global.u32 [%rd3], %r6; ret;",
               out);
    auto const values = device.read(out, 32);
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], 0x01010101u << i % 8);
}

/// A lane may wait for the whole warp while others still meet in smaller tiles.
TEST(PtxMachine, SmallTilesMayComeLateToTheWarp) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SmallDevice device;
        device.options.seed = seed;
        std::uint32_t* const out = device.unwritten_words(32);
        // Lanes 0 to 3 meet twice among themselves first.
        device.run(kMyWord + R"(setp.ge.u32 %p1, %r1, 4;
                      mov.u32 %r5, 0;
                      @%p1 bra ALL;
                      shfl.sync.bfly.b32 %r5, %r1, 1, 0x1f, 15;
                      shfl.sync.bfly.b32 %r5, %r5, 2, 0x1f, 15;
                      ALL: shfl.sync.idx.b32 %r6, %r5, 0, 0x1f, -1;
                      st.global.u32 [%rd3], %r6;
                      ret;)",
                   out);
        EXPECT_EQ(device.read(out, 32), std::vector<std::uint32_t>(32, 3)) << seed;
    }
}

TEST(PtxMachine, MisusedMasksAreErrors) {
    SmallDevice device;
    EXPECT_TRUE(contains(device.error_of("bar.warp.sync 1; ret;"),
                         "the mask does not contain the calling lane"));
    EXPECT_TRUE(contains(device.error_of("setp.lt.u32 %p1, %r1, 3; @%p1 ret;"
                                         "vote.sync.ballot.b32 %r5, %p1, -1; ret;"),
                         "ended"));
    // Lanes 0 to 15 name all lanes; the others leave out lane 0.
    EXPECT_TRUE(contains(device.error_of("setp.lt.u32 %p1, %r1, 16; selp.b32 %r5, -1, -2, %p1;"
                                         "bar.warp.sync %r5; ret;"),
                         "lanes disagree"));
    device.grid.block_size = 16;
    EXPECT_TRUE(contains(device.error_of("bar.warp.sync -1; ret;"), "which has ended"));
}

TEST(PtxMachine, ParametersMustHaveTheRightSize) {
    Kernel const kernel = small_kernel("ret;");
    Arena arena(4096);
    std::uint64_t const one = 0;
    EXPECT_THROW(launch(kernel, {}, {&one, sizeof one}, arena, nullptr, {}), PtxError);
}

}  // namespace
}  // namespace th_ptx
