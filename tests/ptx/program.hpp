// PTX as data: kernels and their instructions, decoded once. The parser refuses every opcode,
// modifier and directive that it does not know, and names the line.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace th_ptx {

/// PTX that cannot be read, or a program that does what a GPU leaves undefined.
struct PtxError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Op : std::uint8_t {
    // integers and floats
    Add,
    Sub,
    Mul,
    MulHigh,
    MulWide,
    Mad,
    MadWide,
    Fma,
    Div,
    Rem,
    Min,
    Max,
    Neg,
    Abs,
    Sqrt,
    // bits
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    FunnelLeft,
    FunnelRight,
    PopCount,
    LeadingZeros,
    Reverse,
    HighestBit,
    HighestBitShift,
    ExtractBits,
    InsertBits,
    Permute,
    // registers
    Move,
    Pack,
    Unpack,
    Select,
    SetPredicate,
    Convert,
    ToSpace,
    FromSpace,
    // memory
    Load,
    Store,
    Atomic,
    Fence,
    Prefetch,
    // control
    Branch,
    BranchTable,
    Return,
    Trap,
    // threads together
    BlockBarrier,
    WarpBarrier,
    Shuffle,
    Ballot,
    Any,
    All,
    Match,
};

enum class Kind : std::uint8_t { Bits, Unsigned, Signed, Float, Predicate };
/// Of floats the unordered comparisons also hold if an operand is NaN.
enum class Compare : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, BothNumbers, SomeNan };
enum class Space : std::uint8_t { Generic, Global, Shared, Param, Local };
enum class Order : std::uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease };
/// How far a strong access is strong: among the threads of a block, or among all.
enum class Scope : std::uint8_t { Block, All };
enum class Change : std::uint8_t { CompareAndSwap, Exchange, Add, And, Or, Xor, Min, Max };
enum class ShuffleMode : std::uint8_t { Index, Up, Down, Xor };
/// Joins the result of a comparison with another predicate.
enum class Combine : std::uint8_t { None, And, Or, Xor };
enum class Round : std::uint8_t { Nearest, Zero, Down, Up };

struct Type {
    Kind kind = Kind::Bits;
    std::uint8_t bits = 32;
};

inline constexpr std::uint32_t kNoRegister = 0xffffffffu;

/// Every operand is a register: constants and the thread's coordinates have registers of their own.
struct Instruction {
    Op op{};
    Type type;
    Type from;  // of a conversion: what it reads
    Compare compare{};
    bool unordered = false;
    Combine combine{};
    Space space{};
    Order order{};
    Scope scope{};
    Change change{};
    ShuffleMode shuffle{};
    Round round{};
    bool skip_if = false;  // skipped if the predicate has this value
    bool negated = false;  // the predicate of a vote or of a combination
    std::uint32_t predicate = kNoRegister;
    std::uint32_t d = kNoRegister;
    std::uint32_t a = kNoRegister;
    std::uint32_t b = kNoRegister;
    std::uint32_t c = kNoRegister;
    std::uint32_t e = kNoRegister;
    std::uint32_t second = kNoRegister;  // the predicate that a shuffle also sets
    std::uint64_t offset = 0;            // added to the address in `a`
    std::uint32_t target = 0;            // of a branch
    std::vector<std::uint32_t> parts;    // registers of a vector, or targets of a branch table
    std::string opcode;
    std::string text;
    std::uint32_t line = 0;

    /// "line 12: [ld.global.u32 %r1, [%rd2]]", for messages.
    std::string where() const { return "line " + std::to_string(line) + ": [" + text + "]"; }
};

struct Constant {
    std::uint32_t reg;
    std::uint64_t value;
};

enum Special : std::uint32_t { kThread, kBlockSize, kBlock, kBlocks, kLane, kSpecials };

struct Kernel {
    std::string name;
    std::vector<Instruction> code;
    std::vector<Constant> constants;
    std::uint32_t registers = 0;
    std::array<std::uint32_t, kSpecials> specials{};  // their registers, or kNoRegister
    std::uint32_t param_bytes = 0;
    std::uint32_t shared_bytes = 0;
    std::uint32_t local_bytes = 0;
};

using Program = std::map<std::string, Kernel>;

/// Kernels by name. A kernel run<Body> gets the C++ name of its body. Throws PtxError.
Program parse(std::string_view text);

}  // namespace th_ptx
