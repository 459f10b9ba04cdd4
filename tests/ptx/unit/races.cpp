// Races that must be found, and programs that must not be accused.
#include <gtest/gtest.h>

#include "ptx/unit/small_program.hpp"

namespace th_ptx {
namespace {

constexpr Grid kOneBlock{1, 32};
constexpr Grid kTwoBlocks{2, 1};
constexpr Grid kTwoThreads{1, 2};

std::string const kSecondGoesToB = "setp.ne.u32 %p1, %r1, 0; @%p1 bra B;\n";

TEST(PtxRaces, TwoPlainWritesRace) {
    auto const races = races_of("st.global.u32 [%rd1], %r1; ret;", kOneBlock);
    ASSERT_EQ(races.size(), 1u);
    EXPECT_EQ(*races.begin(),
              "line 19: [st.global.u32 [%rd1], %r1] and line 19: [st.global.u32 [%rd1], %r1]");
}

TEST(PtxRaces, APlainReadRacesWithAWrite) {
    EXPECT_FALSE(races_of(kSecondGoesToB + "st.global.u32 [%rd1], 1; ret;"
                                           "B: ld.global.u32 %r5, [%rd1]; ret;",
                          kTwoThreads)
                     .empty());
}

TEST(PtxRaces, ReadsDoNotRace) {
    EXPECT_TRUE(races_of("ld.global.u32 %r5, [%rd1]; ret;", kOneBlock).empty());
}

TEST(PtxRaces, NeighbouringBytesDoNotRace) {
    EXPECT_TRUE(races_of("cvt.u64.u32 %rd3, %r1; add.s64 %rd3, %rd1, %rd3;"
                         "st.global.u8 [%rd3], %r1; ret;",
                         kOneBlock)
                    .empty());
}

TEST(PtxRaces, RelaxedAccessesDoNotRace) {
    EXPECT_TRUE(races_of("st.relaxed.gpu.global.u32 [%rd1], %r1;"
                         "ld.relaxed.gpu.global.u32 %r5, [%rd1];"
                         "atom.global.max.u32 %r5, [%rd1], %r1; ret;",
                         {2, 32})
                    .empty());
}

TEST(PtxRaces, OneStrongAccessIsNotEnough) {
    EXPECT_FALSE(races_of(kSecondGoesToB + "st.relaxed.gpu.global.u32 [%rd1], 1; ret;"
                                           "B: ld.global.u32 %r5, [%rd1]; ret;",
                          kTwoThreads)
                     .empty());
}

TEST(PtxRaces, AtomicsOfDifferentSizesRace) {
    EXPECT_FALSE(races_of(kSecondGoesToB + "atom.global.add.u32 %r5, [%rd1], 1; ret;"
                                           "B: atom.global.add.u64 %rd5, [%rd1], 1; ret;",
                          kTwoThreads)
                     .empty());
}

TEST(PtxRaces, TheWordsOfAVectorAreSeparateAccesses) {
    EXPECT_TRUE(races_of(kSecondGoesToB + "atom.global.add.u64 %rd5, [%rd1+8], 1; ret;"
                                          "B: ld.relaxed.gpu.v2.u64 {%rd5, %rd6}, [%rd1]; ret;",
                         kTwoThreads)
                    .empty());
}

TEST(PtxRaces, TheScopeOfABlockEndsAtTheBlock) {
    std::string const body = "atom.cta.global.add.u32 %r5, [%rd1], 1; ret;";
    EXPECT_TRUE(races_of(body, kTwoThreads).empty());
    EXPECT_FALSE(races_of(body, kTwoBlocks).empty());
}

TEST(PtxRaces, AFailedCompareAndSwapIsARead) {
    EXPECT_TRUE(races_of(kSecondGoesToB + "atom.global.cas.b32 %r5, [%rd1], 7, 8; ret;"
                                          "B: ld.global.u32 %r5, [%rd1]; ret;",
                         kTwoThreads)
                    .empty());
    EXPECT_FALSE(races_of(kSecondGoesToB + "atom.global.cas.b32 %r5, [%rd1], 0, 8; ret;"
                                           "B: ld.global.u32 %r5, [%rd1]; ret;",
                          kTwoThreads)
                     .empty());
}

/// Lane 0 writes, all lanes read after `between`.
std::set<std::string> written_before(std::string const& between) {
    return races_of("setp.ne.u32 %p1, %r4, 0; @%p1 bra READ; st.global.u32 [%rd1], 1; READ: " +
                        between + "ld.global.u32 %r5, [%rd1]; ret;",
                    kOneBlock);
}

TEST(PtxRaces, BarriersOrderMemory) {
    EXPECT_TRUE(written_before("bar.sync 0;").empty());
    EXPECT_TRUE(written_before("bar.warp.sync -1;").empty());
    EXPECT_FALSE(written_before("").empty());
}

TEST(PtxRaces, VotesAndShufflesDoNot) {
    EXPECT_FALSE(written_before("vote.sync.ballot.b32 %r6, %p1, -1;").empty());
    EXPECT_FALSE(written_before("shfl.sync.idx.b32 %r6, %r1, 0, 0x1f, -1;").empty());
}

TEST(PtxRaces, ABarrierOrdersItsOwnBlockOnly) {
    EXPECT_FALSE(
        races_of("st.global.u32 [%rd1], 1; bar.sync 0; ld.global.u32 %r5, [%rd1]; ret;", kTwoBlocks)
            .empty());
}

TEST(PtxRaces, SharedMemoryRacesWithinABlockOnly) {
    std::string const body = ".shared .align 4 .b8 x[4]; st.shared.u32 [x], %r1; ret;";
    EXPECT_FALSE(races_of(body, kTwoThreads).empty());
    EXPECT_TRUE(races_of(body, {9, 1}).empty());
}

/// Thread 0 writes data and then a flag; thread 1 waits for the flag and reads the data.
std::set<std::string> message(std::string const& set, std::string const& get,
                              Grid grid = kTwoBlocks) {
    return races_of(kSecondGoesToB + "st.global.u32 [%rd1], 1; " + set + " ret; B: " + get +
                        " setp.eq.u32 %p2, %r5, 0; @%p2 bra B; " +
                        "ld.global.u32 %r6, [%rd1]; ret;",
                    grid);
}

TEST(PtxRaces, AReleaseOrdersWhatItsAcquireSees) {
    EXPECT_TRUE(
        message("st.release.gpu.global.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd2];")
            .empty());
    EXPECT_TRUE(message("atom.acq_rel.gpu.global.exch.b32 %r7, [%rd2], 1;",
                        "ld.acquire.gpu.global.u32 %r5, [%rd2];")
                    .empty());
}

TEST(PtxRaces, RelaxedFlagsDoNotOrderMemory) {
    EXPECT_FALSE(
        message("st.relaxed.gpu.global.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd2];")
            .empty());
    EXPECT_FALSE(
        message("st.release.gpu.global.u32 [%rd2], 1;", "ld.relaxed.gpu.global.u32 %r5, [%rd2];")
            .empty());
}

TEST(PtxRaces, FencesTurnRelaxedFlagsIntoReleaseAndAcquire) {
    std::string const set = "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd2], 1;";
    std::string const get = "ld.relaxed.gpu.global.u32 %r5, [%rd2];";
    EXPECT_TRUE(message(set, get + " membar.gl;").empty());
    EXPECT_FALSE(message(set, get).empty());
}

TEST(PtxRaces, AReleaseWithinABlockIsForThatBlock) {
    std::string const set = "st.release.cta.global.u32 [%rd2], 1;";
    std::string const get = "ld.acquire.cta.global.u32 %r5, [%rd2];";
    EXPECT_TRUE(message(set, get, kTwoThreads).empty());
    EXPECT_FALSE(message(set, get, kTwoBlocks).empty());
}

TEST(PtxRaces, LaunchesFollowOneAnother) {
    SmallDevice device;
    device.grid.block_size = 1;
    std::uint32_t* const words = device.words({0});
    device.run("st.global.u32 [%rd1], 1; ret;", words);
    device.run("ld.global.u32 %r5, [%rd1]; st.global.u32 [%rd1], 2; ret;", words);
    EXPECT_TRUE(device.races().empty());
}

}  // namespace
}  // namespace th_ptx
