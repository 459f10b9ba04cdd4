// Instructions on registers, each against a value that PTX's manual or C++ gives.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "ptx/unit/small_program.hpp"

namespace th_ptx {
namespace {

/// What `statement` leaves in %rd5, with a in %rd3 and b in %rd4.
std::uint64_t result(std::string const& statement, std::uint64_t a = 0, std::uint64_t b = 0) {
    SmallDevice device;
    device.grid.block_size = 1;
    std::uint32_t* const in =
        device.words({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32),
                      static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32), 0, 0});
    device.run("ld.global.v2.u64 {%rd3, %rd4}, [%rd1]; mov.b64 %rd5, 0;\n" + statement +
                   "\nst.global.u64 [%rd1+16], %rd5; ret;",
               in);
    auto const out = device.read(in + 4, 2);
    return static_cast<std::uint64_t>(out[1]) << 32 | out[0];
}

/// The predicate that a comparison sets.
bool holds(std::string const& comparison, std::uint64_t a, std::uint64_t b) {
    return result("setp." + comparison + " %p1, %rd3, %rd4; selp.b64 %rd5, 1, 0, %p1;", a, b) == 1;
}

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

constexpr std::uint64_t kMinus1 = ~std::uint64_t{0};

TEST(PtxArithmetic, IntegersWrapAtTheirWidth) {
    EXPECT_EQ(result("add.s32 %rd5, %rd3, %rd4;", 0xffffffff, 2), 1u);
    EXPECT_EQ(result("sub.s64 %rd5, %rd3, %rd4;", 0, 1), kMinus1);
    EXPECT_EQ(result("mul.lo.s32 %rd5, %rd3, %rd4;", 0x10001, 0x10001), 0x20001u);
    EXPECT_EQ(result("mul.wide.u32 %rd5, %rd3, %rd4;", 0xffffffff, 0xffffffff),
              0xfffffffe00000001u);
    EXPECT_EQ(result("mul.wide.s32 %rd5, %rd3, %rd4;", 0xffffffff, 5), kMinus1 - 4);
    EXPECT_EQ(result("mul.hi.u64 %rd5, %rd3, %rd4;", kMinus1, 3), 2u);
    EXPECT_EQ(result("mul.hi.s64 %rd5, %rd3, %rd4;", kMinus1, 3), kMinus1);
    EXPECT_EQ(result("mul.hi.u32 %rd5, %rd3, %rd4;", 0x80000000, 6), 3u);
    EXPECT_EQ(result("mad.lo.s32 %rd5, %rd3, %rd4, 7;", 3, 5), 22u);
    EXPECT_EQ(result("mad.wide.u32 %rd5, %rd3, %rd4, %rd3;", 0x80000000, 2), 0x180000000u);
}

TEST(PtxArithmetic, DivisionFollowsTheSign) {
    EXPECT_EQ(result("div.s32 %rd5, %rd3, %rd4;", 0xfffffff9, 2), 0xfffffffdu);
    EXPECT_EQ(result("rem.s32 %rd5, %rd3, %rd4;", 0xfffffff9, 2), 0xffffffffu);
    EXPECT_EQ(result("div.u32 %rd5, %rd3, %rd4;", 0xfffffff9, 2), 0x7ffffffcu);
    EXPECT_EQ(result("div.s64 %rd5, %rd3, %rd4;", std::uint64_t{1} << 63, kMinus1),
              std::uint64_t{1} << 63);
    EXPECT_EQ(result("min.s32 %rd5, %rd3, %rd4;", 0xffffffff, 1), 0xffffffffu);
    EXPECT_EQ(result("max.u32 %rd5, %rd3, %rd4;", 0xffffffff, 1), 0xffffffffu);
    EXPECT_THROW(result("div.u32 %rd5, %rd3, %rd4;", 1, 0), PtxError);
}

TEST(PtxArithmetic, ShiftsBeyondTheWidthGiveZeroOrTheSign) {
    EXPECT_EQ(result("shl.b32 %rd5, %rd3, 32;", 1), 0u);
    EXPECT_EQ(result("shr.u64 %rd5, %rd3, 64;", kMinus1), 0u);
    EXPECT_EQ(result("shr.s32 %rd5, %rd3, 99;", 0x80000000), 0xffffffffu);
    EXPECT_EQ(result("shf.l.wrap.b32 %rd5, %rd3, %rd4, 8;", 0xaabbccdd, 0x11223344), 0x223344aau);
    EXPECT_EQ(result("shf.l.wrap.b32 %rd5, %rd3, %rd4, 0;", 0xaabbccdd, 0x11223344), 0x11223344u);
    EXPECT_EQ(result("shf.r.wrap.b32 %rd5, %rd3, %rd4, 8;", 0xaabbccdd, 0x11223344), 0x44aabbccu);
}

TEST(PtxArithmetic, Bits) {
    EXPECT_EQ(result("popc.b64 %rd5, %rd3;", 0xff00ff0000000001u), 17u);
    EXPECT_EQ(result("clz.b32 %rd5, %rd3;", 1), 31u);
    EXPECT_EQ(result("brev.b32 %rd5, %rd3;", 0x80000001), 0x80000001u);
    EXPECT_EQ(result("bfind.u32 %rd5, %rd3;", 0x100), 8u);
    EXPECT_EQ(result("bfind.shiftamt.u32 %rd5, %rd3;", 0x100), 23u);
    EXPECT_EQ(result("bfe.u32 %rd5, %rd3, 4, 8;", 0xabcd), 0xbcu);
    EXPECT_EQ(result("bfi.b32 %rd5, %rd3, %rd4, 8, 4;", 0xf, 0xaaaa), 0xafaau);
    EXPECT_EQ(result("prmt.b32 %rd5, %rd3, %rd4, 0x7040;", 0x44332211, 0x88776655), 0x88115511u);
    EXPECT_EQ(result("prmt.b32 %rd5, %rd3, %rd4, 0xffff;", 0, 0x80000000), 0xffffffffu);
    EXPECT_EQ(result("not.b32 %rd5, %rd3;", 1), 0xfffffffeu);
}

TEST(PtxArithmetic, VectorsPackAndUnpack) {
    EXPECT_EQ(result("mov.b64 {%r5, %r6}, %rd3; mov.b64 %rd5, {%r6, %r5};", 0x1122334455667788u),
              0x5566778811223344u);
}

TEST(PtxArithmetic, FloatsFollowIeee) {
    EXPECT_EQ(result("add.rn.f32 %rd5, %rd3, %rd4;", bits(1.5f), bits(2.25f)), bits(3.75f));
    EXPECT_EQ(result("fma.rn.f64 %rd5, %rd3, %rd4, %rd3;", bits(3.0), bits(2.0)), bits(9.0));
    EXPECT_EQ(result("div.rn.f32 %rd5, %rd3, %rd4;", bits(1.0f), bits(3.0f)), bits(1.0f / 3.0f));
    EXPECT_EQ(result("sqrt.rn.f64 %rd5, %rd3;", bits(2.0)), bits(1.4142135623730951));
    EXPECT_EQ(result("min.f32 %rd5, %rd3, %rd4;", bits(0.0f), bits(-0.0f)), bits(-0.0f));
    EXPECT_EQ(result("max.f32 %rd5, %rd3, %rd4;", bits(-0.0f), bits(0.0f)), bits(0.0f));
    float const nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(result("max.f32 %rd5, %rd3, %rd4;", bits(nan), bits(2.0f)), bits(2.0f));
    EXPECT_EQ(result("neg.f32 %rd5, %rd3;", bits(0.0f)), bits(-0.0f));
}

TEST(PtxArithmetic, ComparisonsKnowSignsAndNan) {
    EXPECT_TRUE(holds("lt.s32", 0xffffffff, 1));
    EXPECT_FALSE(holds("lt.u32", 0xffffffff, 1));
    EXPECT_TRUE(holds("hs.u64", kMinus1, 1));
    std::uint64_t const nan = bits(std::numeric_limits<float>::quiet_NaN());
    EXPECT_FALSE(holds("ne.f32", nan, nan));
    EXPECT_TRUE(holds("neu.f32", nan, nan));
    EXPECT_TRUE(holds("nan.f32", nan, bits(1.0f)));
    EXPECT_TRUE(holds("num.f32", bits(2.0f), bits(1.0f)));
    EXPECT_FALSE(holds("le.f32", nan, bits(1.0f)));
    EXPECT_TRUE(holds("leu.f32", nan, bits(1.0f)));
}

TEST(PtxArithmetic, CombinedPredicates) {
    std::string const is_one = "setp.eq.u64 %p2, %rd3, 1; setp.eq.and.u64 %p1, %rd4, 2, ";
    EXPECT_EQ(result(is_one + "%p2; selp.b64 %rd5, 1, 0, %p1;", 1, 2), 1u);
    EXPECT_EQ(result(is_one + "!%p2; selp.b64 %rd5, 1, 0, %p1;", 1, 2), 0u);
}

TEST(PtxArithmetic, ConversionsExtendTruncateAndClamp) {
    EXPECT_EQ(result("cvt.s64.s32 %rd5, %rd3;", 0x80000000), 0xffffffff80000000u);
    EXPECT_EQ(result("cvt.u64.u32 %rd5, %rd3;", 0xffffffff80000000u), 0x80000000u);
    EXPECT_EQ(result("cvt.u32.u64 %rd5, %rd3;", 0x123456789u), 0x23456789u);
    EXPECT_EQ(result("cvt.rn.f32.s32 %rd5, %rd3;", 0xffffffff), bits(-1.0f));
    EXPECT_EQ(result("cvt.rn.f64.u64 %rd5, %rd3;", 5), bits(5.0));
    EXPECT_EQ(result("cvt.rzi.s32.f32 %rd5, %rd3;", bits(-2.7f)), 0xfffffffeu);
    EXPECT_EQ(result("cvt.rzi.s32.f32 %rd5, %rd3;", bits(3e9f)), 0x7fffffffu);
    EXPECT_EQ(result("cvt.rmi.s32.f64 %rd5, %rd3;", bits(-2.1)), 0xfffffffdu);
    EXPECT_EQ(result("cvt.rzi.u32.f32 %rd5, %rd3;", bits(-1.0f)), 0u);
    EXPECT_EQ(result("cvt.rzi.s32.f32 %rd5, %rd3;", bits(std::numeric_limits<float>::quiet_NaN())),
              0u);
    EXPECT_EQ(result("cvt.f64.f32 %rd5, %rd3;", bits(0.1f)), bits(static_cast<double>(0.1f)));
    EXPECT_EQ(result("cvt.rn.f32.f64 %rd5, %rd3;", bits(0.1)), bits(0.1f));
    EXPECT_EQ(result("cvt.rmi.f64.f64 %rd5, %rd3;", bits(-2.1)), bits(-3.0));
    EXPECT_EQ(result("cvt.rpi.f32.f32 %rd5, %rd3;", bits(-2.1f)), bits(-2.0f));
    EXPECT_THROW(result("cvt.f64.f64 %rd5, %rd3;"), PtxError);
    EXPECT_THROW(result("cvt.rz.f32.f64 %rd5, %rd3;"), PtxError);
    EXPECT_THROW(result("cvt.f32.f16 %rd5, %rd3;"), PtxError);
}

}  // namespace
}  // namespace th_ptx
