// Device memory: what the arena must refuse, and what it must not.
#include "ptx/arena.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>

#include "ptx/program.hpp"

namespace th_ptx {
namespace {

template <class Call>
std::string error_of(Call const& call) {
    try {
        call();
    } catch (PtxError const& error) {
        return error.what();
    }
    return "no error";
}

TEST(PtxArena, WhatTheHostWritesItReads) {
    Arena arena;
    void* const p = arena.allocate(8);
    std::uint64_t const in = 0x123456789abcdefull;
    std::uint64_t out = 0;
    arena.write(p, &in, 8);
    arena.read(&out, p, 8);
    EXPECT_EQ(out, in);
    arena.fill(p, 1, 4);
    arena.read(&out, p, 8);
    EXPECT_EQ(out, 0x123456701010101ull);
}

TEST(PtxArena, RefusesAccessOutsideOfAllocations) {
    Arena arena;
    char* const p = static_cast<char*>(arena.allocate(10));
    arena.allocate(10);
    EXPECT_EQ(error_of([&] { arena.fill(p, 0, 11); }),
              "out of bounds: 11 bytes, 0 bytes after the start of an allocation of 10 bytes, in "
              "fill");
    EXPECT_NE(error_of([&] { arena.fill(p - 1, 0, 1); }).find("outside of all allocations"),
              std::string::npos);
    EXPECT_NE(error_of([&] { arena.fill(nullptr, 0, 1); }).find("out of bounds"),
              std::string::npos);
}

TEST(PtxArena, RefusesReadsOfUnwrittenBytes) {
    Arena arena;
    char* const p = static_cast<char*>(arena.allocate(8));
    char out[8];
    arena.fill(p, 0, 7);
    EXPECT_EQ(error_of([&] { arena.read(out, p, 7); }), "no error");
    EXPECT_NE(error_of([&] { arena.read(out, p, 8); }).find("unwritten read"), std::string::npos);
}

TEST(PtxArena, ACopyOfUnwrittenBytesIsUnwritten) {
    Arena arena;
    char* const from = static_cast<char*>(arena.allocate(8));
    char* const to = static_cast<char*>(arena.allocate(8));
    char out[8];
    arena.fill(from, 0, 4);
    arena.copy(to, from, 8);
    EXPECT_EQ(error_of([&] { arena.read(out, to, 4); }), "no error");
    EXPECT_NE(error_of([&] { arena.read(out, to + 4, 1); }).find("unwritten"), std::string::npos);
}

TEST(PtxArena, ReleasedMemoryIsNeverGivenOutAgain) {
    Arena arena;
    void* const p = arena.allocate(16);
    arena.fill(p, 0, 16);
    arena.release(p);
    EXPECT_NE(arena.allocate(16), p);
    EXPECT_NE(error_of([&] { arena.fill(p, 0, 1); }).find("released memory"), std::string::npos);
    EXPECT_EQ(error_of([&] { arena.release(p); }), "release: this memory is already released");
    EXPECT_EQ(error_of([&] { arena.release(nullptr); }), "release: not an allocation");
    EXPECT_EQ(arena.live_allocations(), 1u);
}

TEST(PtxArena, SaysWhenItIsUsedUp) {
    Arena arena(4096);
    EXPECT_THROW(arena.allocate(4096), std::bad_alloc);
    EXPECT_THROW(arena.allocate(~std::size_t{0}), std::bad_alloc);
    EXPECT_NO_THROW(arena.allocate(1024));
}

}  // namespace
}  // namespace th_ptx
