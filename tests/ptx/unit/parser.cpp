// The parser takes what clang writes and refuses everything else with a line.
#include <gtest/gtest.h>

#include "ptx/unit/small_program.hpp"

namespace th_ptx {
namespace {

std::string parse_error(std::string const& text) {
    try {
        parse(text);
    } catch (PtxError const& error) {
        return error.what();
    }
    return "no error";
}

/// The first line of `body` is line 19 of the module.
std::string body_error(std::string const& body) { return parse_error(small_module(body)); }

TEST(PtxParser, DecodesTypesSpacesAndOrders) {
    Kernel const kernel = small_kernel("ld.relaxed.gpu.global.v2.u64 {%rd3, _}, [%rd1+16]; ret;");
    Instruction const& in = kernel.code[kernel.code.size() - 2];
    EXPECT_EQ(in.op, Op::Load);
    EXPECT_EQ(in.type.bits, 64);
    EXPECT_EQ(in.space, Space::Global);
    EXPECT_EQ(in.order, Order::Relaxed);
    EXPECT_EQ(in.scope, Scope::All);
    EXPECT_EQ(in.offset, 16u);
    ASSERT_EQ(in.parts.size(), 2u);
    EXPECT_EQ(in.parts[1], kNoRegister);
    EXPECT_EQ(in.line, 19u);
}

TEST(PtxParser, AtomicsWithoutAnOrderAreRelaxed) {
    Kernel const kernel = small_kernel("atom.cta.shared.add.u32 %r5, [%rd1], 1; ret;");
    Instruction const& in = kernel.code[kernel.code.size() - 2];
    EXPECT_EQ(in.order, Order::Relaxed);
    EXPECT_EQ(in.scope, Scope::Block);
    EXPECT_EQ(in.space, Space::Shared);
}

TEST(PtxParser, ParametersAndVariablesAreAligned) {
    std::string const text = R"(.version 8.8
.visible .entry k(.param .u32 a, .param .align 16 .b8 b[24], .param .u8 c)
.maxntid 256
{
    .shared .align 4 .b8 x[6];
    .shared .u64 y;
    .local .align 8 .b8 depot[40];
    ret;
})";
    Kernel const kernel = parse(text).at("k");
    EXPECT_EQ(kernel.param_bytes, 41u);
    EXPECT_EQ(kernel.shared_bytes, 16u);
    EXPECT_EQ(kernel.local_bytes, 40u);
}

TEST(PtxParser, KernelsHaveTheirOwnCopyOfTheModulesSharedMemory) {
    std::string const text = R"(.shared .align 8 .b8 big[64];
.shared .align 4 .b8 small[4];
.entry one(.param .u32 a) { st.shared.u32 [big+60], 1; st.shared.u32 [big], 1; ret; }
.entry both(.param .u32 a) { st.shared.u32 [small], 1; st.shared.u32 [big], 1; ret; }
.entry none(.param .u32 a) { ret; })";
    Program const program = parse(text);
    EXPECT_EQ(program.at("one").shared_bytes, 64u);
    EXPECT_EQ(program.at("both").shared_bytes, 72u);
    EXPECT_EQ(program.at("none").shared_bytes, 0u);
}

TEST(PtxParser, KernelsThatRunABodyHaveItsName) {
    std::string const text =
        ".visible .entry _ZN4cuda3runIN6device8FindRowsEEEvT_(.param .u32 a) { ret; }";
    EXPECT_TRUE(parse(text).contains("device::FindRows"));
}

TEST(PtxParser, RegistersOfANestedScopeHideOuterOnes) {
    SmallDevice device;
    device.grid.block_size = 1;
    std::uint32_t* const out = device.words({0});
    device.run(R"(mov.u32 %r5, 7;
                  { .reg .b32 %r5; mov.u32 %r5, 9; }
                  st.global.u32 [%rd1], %r5;
                  ret;)",
               out);
    EXPECT_EQ(device.read(out, 1).front(), 7u);
}

TEST(PtxParser, UnknownOpcodesAreNamedWithTheirLine) {
    EXPECT_EQ(body_error("ret;\nfrobnicate.u32 %r1, %r2;\nret;"),
              "PTX line 20: [frobnicate.u32 %r1, %r2]: unknown opcode frobnicate.u32");
}

TEST(PtxParser, UnknownModifiersAreNamedWithTheirLine) {
    EXPECT_EQ(body_error("add.rn.ftz.f32 %f1, %f2, %f3; ret;"),
              "PTX line 19: [add.rn.ftz.f32 %f1, %f2, %f3]: unknown modifier .ftz");
    EXPECT_EQ(body_error("ld.mmio.global.u32 %r5, [%rd1]; ret;"),
              "PTX line 19: [ld.mmio.global.u32 %r5, [%rd1]]: unknown modifier .mmio");
}

TEST(PtxParser, RefusesWhatItWouldGetWrong) {
    EXPECT_NE(body_error("mov.u32 %r5, %r99; ret;").find("unknown operand \"%r99\""),
              std::string::npos);
    EXPECT_NE(body_error("mov.u32 %r5, %tid.y; ret;").find("unknown operand \"%tid.y\""),
              std::string::npos);
    EXPECT_NE(body_error("add.u32 %r5, %r6; ret;").find("expected 3 operands, got 2"),
              std::string::npos);
    EXPECT_NE(body_error("atom.global.add.f32 %f1, [%rd1], %f2; ret;").find("floats"),
              std::string::npos);
    EXPECT_NE(body_error("bar.sync 1; ret;").find("expected barrier 0"), std::string::npos);
    EXPECT_NE(body_error("st.param.u32 [%rd1], %r5; ret;").find("cannot write its parameters"),
              std::string::npos);
    EXPECT_NE(body_error("bra NOWHERE;").find("no label NOWHERE"), std::string::npos);
    EXPECT_NE(body_error(".global .u32 x; ret;").find("unknown directive .global"),
              std::string::npos);
    EXPECT_NE(body_error("mov.u32 %r5, 1;").find("can run past its last instruction"),
              std::string::npos);
}

TEST(PtxParser, RefusesFunctionsAndModuleVariables) {
    EXPECT_EQ(parse_error(".version 8.8\n\n.func f() { ret; }"),
              "PTX line 3: expected a kernel, got .func: functions and variables of a module are "
              "not supported");
    EXPECT_NE(parse_error(".global .u32 x;\n").find("got .global"), std::string::npos);
    EXPECT_NE(parse_error(".entry k(.param .u32 a) { mov.u32 ").find("the end of the text"),
              std::string::npos);
}

}  // namespace
}  // namespace th_ptx
