// Turns statements of PTX into instructions. A function has over 50 lines: the table of
// instructions.
#include "ptx/decode.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptx/statement.hpp"
#include "ptx/text.hpp"

namespace th_ptx {
namespace {

using Handler = void (*)(Statement&);

template <Op op, std::size_t Operands>
void plain(Statement& s) {
    s.in.op = op;
    s.take_operands(Operands);
}

/// Only IEEE's rounding to nearest: other roundings, .ftz and .approx stay unknown.
template <Op op, std::size_t Operands>
void arithmetic(Statement& s) {
    s.in.op = op;
    if (s.in.type.kind == Kind::Float) s.modifiers.ignore({"rn"});
    s.take_operands(Operands);
}

template <bool with_sum>
void multiply(Statement& s) {
    if (s.in.type.kind == Kind::Float) {
        s.modifiers.ignore({"rn"});
        s.in.op = with_sum ? Op::Fma : Op::Mul;
    } else if (s.modifiers.take("wide")) {
        s.in.op = with_sum ? Op::MadWide : Op::MulWide;
    } else if (!with_sum && s.modifiers.take("hi")) {
        s.in.op = Op::MulHigh;
    } else {
        s.modifiers.require("lo");
        s.in.op = with_sum ? Op::Mad : Op::Mul;
    }
    s.take_operands(with_sum ? 4 : 3);
}

void find_bit(Statement& s) {
    s.in.op = s.modifiers.take("shiftamt") ? Op::HighestBitShift : Op::HighestBit;
    s.take_operands(2);
}

void funnel_shift(Statement& s) {
    s.in.op = s.modifiers.take("l") ? Op::FunnelLeft : Op::FunnelRight;
    s.modifiers.ignore({"r"});
    s.modifiers.require("wrap");
    s.take_operands(4);
}

void move(Statement& s) {
    s.require_arguments(2);
    if (s.is_vector(1)) {
        s.in.op = Op::Pack;
        s.in.d = s.operand(0);
        s.in.parts = s.names.vector(s.argument(1));
    } else if (s.is_vector(0)) {
        s.in.op = Op::Unpack;
        s.in.parts = s.names.vector(s.argument(0));
        s.in.a = s.operand(1);
    } else {
        s.in.op = Op::Move;
        s.take_operands(2);
    }
}

void set_predicate(Statement& s) {
    s.in.op = Op::SetPredicate;
    bool const ordered = s.modifiers.take_one<Compare>({{"eq", Compare::Eq},
                                                        {"ne", Compare::Ne},
                                                        {"lt", Compare::Lt},
                                                        {"le", Compare::Le},
                                                        {"gt", Compare::Gt},
                                                        {"ge", Compare::Ge},
                                                        {"lo", Compare::Lt},
                                                        {"ls", Compare::Le},
                                                        {"hi", Compare::Gt},
                                                        {"hs", Compare::Ge},
                                                        {"num", Compare::BothNumbers},
                                                        {"nan", Compare::SomeNan}},
                                                       s.in.compare);
    s.in.unordered = !ordered && s.modifiers.take_one<Compare>({{"equ", Compare::Eq},
                                                                {"neu", Compare::Ne},
                                                                {"ltu", Compare::Lt},
                                                                {"leu", Compare::Le},
                                                                {"gtu", Compare::Gt},
                                                                {"geu", Compare::Ge}},
                                                               s.in.compare);
    if (!ordered && !s.in.unordered) throw PtxError("expected a comparison");
    bool const combines = s.modifiers.take_one<Combine>(
        {{"and", Combine::And}, {"or", Combine::Or}, {"xor", Combine::Xor}}, s.in.combine);
    if (combines && s.argument(3)[0] == '!') {
        s.in.negated = true;
        s.arguments[3].erase(0, 1);
    }
    s.take_operands(combines ? 4 : 3);
}

void convert(Statement& s) {
    s.in.op = Op::Convert;
    if (!s.modifiers.take_type(s.in.from)) throw PtxError("expected two types");
    bool const to_whole = s.modifiers.take_one<Round>(
        {{"rni", Round::Nearest}, {"rzi", Round::Zero}, {"rmi", Round::Down}, {"rpi", Round::Up}},
        s.in.round);
    if (!to_whole) {
        s.modifiers.take_one<Round>({{"rn", Round::Nearest}, {"rz", Round::Zero}}, s.in.round);
    }
    if (s.in.type.kind == Kind::Float && s.in.from.kind == Kind::Float) {
        bool const same = s.in.type.bits == s.in.from.bits;
        if (same != to_whole || (!same && s.in.round != Round::Nearest)) {
            throw PtxError(
                "expected .rn or none between two sizes of floats, else .rmi or the like");
        }
    }
    s.take_operands(2);
}

void convert_address(Statement& s) {
    s.in.op = s.modifiers.take("to") ? Op::ToSpace : Op::FromSpace;
    if (!take_space(s) || s.in.space == Space::Param) {
        throw PtxError("expected .global, .shared or .local");
    }
    s.take_operands(2);
}

void branch(Statement& s) {
    s.in.op = Op::Branch;
    s.modifiers.ignore({"uni"});
    s.require_arguments(1);
    s.label = s.argument(0);
}

void branch_table(Statement& s) {
    s.in.op = Op::BranchTable;
    s.modifiers.ignore({"uni"});
    s.modifiers.require("idx");
    s.require_arguments(2);
    s.in.a = s.operand(0);
    s.label = s.argument(1);
}

void leave(Statement& s) {
    s.in.op = Op::Return;
    s.modifiers.ignore({"uni"});
    s.require_arguments(0);
}

void barrier(Statement& s) {
    s.modifiers.ignore({"cta", "aligned"});
    bool const of_warp = s.modifiers.take("warp");
    s.modifiers.require("sync");
    s.in.op = of_warp ? Op::WarpBarrier : Op::BlockBarrier;
    s.require_arguments(1);
    if (!of_warp && s.argument(0) != "0") throw PtxError("expected barrier 0");
    s.in.e = s.operand(0);
}

void shuffle(Statement& s) {
    s.in.op = Op::Shuffle;
    s.modifiers.require("sync");
    if (!s.modifiers.take_one<ShuffleMode>({{"idx", ShuffleMode::Index},
                                            {"up", ShuffleMode::Up},
                                            {"down", ShuffleMode::Down},
                                            {"bfly", ShuffleMode::Xor}},
                                           s.in.shuffle)) {
        throw PtxError("expected .idx, .up, .down or .bfly");
    }
    s.require_arguments(5);
    std::vector<std::string> const results = split(s.argument(0), '|');
    s.in.d = s.names.operand(results.at(0));
    if (results.size() > 1) s.in.second = s.names.operand(results[1]);
    s.in.a = s.operand(1);
    s.in.b = s.operand(2);
    s.in.c = s.operand(3);
    s.in.e = s.operand(4);
}

void vote(Statement& s) {
    s.modifiers.require("sync");
    if (!s.modifiers.take_one<Op>({{"ballot", Op::Ballot}, {"any", Op::Any}, {"all", Op::All}},
                                  s.in.op)) {
        throw PtxError("expected .ballot, .any or .all");
    }
    s.require_arguments(3);
    s.in.d = s.operand(0);
    s.in.negated = s.argument(1)[0] == '!';
    s.in.a = s.names.operand(s.argument(1).substr(s.in.negated ? 1 : 0));
    s.in.e = s.operand(2);
}

void match(Statement& s) {
    s.in.op = Op::Match;
    s.modifiers.require("any");
    s.modifiers.require("sync");
    s.require_arguments(3);
    s.in.d = s.operand(0);
    s.in.a = s.operand(1);
    s.in.e = s.operand(2);
}

std::unordered_map<std::string, Handler> const& handlers() {
    static std::unordered_map<std::string, Handler> const all = {
        {"add", arithmetic<Op::Add, 3>},
        {"sub", arithmetic<Op::Sub, 3>},
        {"div", arithmetic<Op::Div, 3>},
        {"sqrt", arithmetic<Op::Sqrt, 2>},
        {"fma", multiply<true>},
        {"mul", multiply<false>},
        {"mad", multiply<true>},
        {"rem", plain<Op::Rem, 3>},
        {"min", plain<Op::Min, 3>},
        {"max", plain<Op::Max, 3>},
        {"neg", plain<Op::Neg, 2>},
        {"abs", plain<Op::Abs, 2>},
        {"and", plain<Op::And, 3>},
        {"or", plain<Op::Or, 3>},
        {"xor", plain<Op::Xor, 3>},
        {"not", plain<Op::Not, 2>},
        {"shl", plain<Op::ShiftLeft, 3>},
        {"shr", plain<Op::ShiftRight, 3>},
        {"popc", plain<Op::PopCount, 2>},
        {"clz", plain<Op::LeadingZeros, 2>},
        {"brev", plain<Op::Reverse, 2>},
        {"bfe", plain<Op::ExtractBits, 4>},
        {"bfi", plain<Op::InsertBits, 5>},
        {"prmt", plain<Op::Permute, 4>},
        {"selp", plain<Op::Select, 4>},
        {"bfind", find_bit},
        {"shf", funnel_shift},
        {"mov", move},
        {"setp", set_predicate},
        {"cvt", convert},
        {"cvta", convert_address},
        {"ld", decode_load},
        {"st", decode_store},
        {"atom", decode_atomic},
        {"red", decode_reduction},
        {"fence", decode_fence},
        {"membar", decode_fence},
        {"prefetch", decode_prefetch},
        {"bra", branch},
        {"brx", branch_table},
        {"ret", leave},
        {"exit", leave},
        {"trap", plain<Op::Trap, 0>},
        {"bar", barrier},
        {"barrier", barrier},
        {"shfl", shuffle},
        {"vote", vote},
        {"match", match},
    };
    return all;
}

void read_predicate(std::string_view& statement, Instruction& in, Names& names) {
    if (statement[0] != '@') return;
    std::size_t const end = std::min(statement.find_first_of(" \t\n"), statement.size());
    in.skip_if = statement.substr(1, 1) == "!";
    std::size_t const begin = in.skip_if ? 2 : 1;
    in.predicate = names.operand(std::string(statement.substr(begin, end - begin)));
    statement = trimmed(statement.substr(end));
}

void decode_into(Decoded& out, std::string_view statement, Names& names) {
    Instruction& in = out.instruction;
    read_predicate(statement, in, names);
    std::size_t const end = std::min(statement.find_first_of(" \t\n"), statement.size());
    in.opcode = std::string(statement.substr(0, end));
    auto const handler = handlers().find(in.opcode.substr(0, in.opcode.find('.')));
    if (handler == handlers().end()) throw PtxError("unknown opcode " + in.opcode);
    Statement s{names, Modifiers(in.opcode), split(statement.substr(end), ','), in, out.label};
    s.modifiers.take_type(in.type);
    in.from = in.type;
    handler->second(s);
    s.modifiers.require_none();
}

}  // namespace

Decoded decode(std::string_view statement, std::uint32_t line, Names& names) {
    Decoded out;
    Instruction& in = out.instruction;
    in.line = line;
    for (std::string const& word : words_of(statement)) {
        in.text += (in.text.empty() ? "" : " ") + word;
    }
    try {
        decode_into(out, statement, names);
    } catch (std::exception const& error) {
        throw PtxError("PTX " + in.where() + ": " + error.what());
    }
    return out;
}

}  // namespace th_ptx
