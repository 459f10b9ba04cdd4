// One instruction of one thread. A function has over 50 lines: one case per kind of instruction.
#include "ptx/arithmetic.hpp"
#include "ptx/launch.hpp"

namespace th_ptx {
namespace {

std::uint64_t packed(Thread const& thread, Instruction const& in) {
    unsigned const each = in.type.bits / static_cast<unsigned>(in.parts.size());
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < in.parts.size(); ++i) {
        all |= low_bits(thread.registers[in.parts[i]], each) << (each * i);
    }
    return all;
}

void unpack(Thread& thread, Instruction const& in) {
    unsigned const each = in.type.bits / static_cast<unsigned>(in.parts.size());
    std::uint64_t const all = thread.registers[in.a];
    for (std::size_t i = 0; i < in.parts.size(); ++i) {
        if (in.parts[i] == kNoRegister) continue;
        thread.registers[in.parts[i]] = low_bits(all >> (each * i), each);
    }
}

bool predicate_of(Thread const& thread, Instruction const& in) {
    bool const is = compared(in, thread.registers[in.a], thread.registers[in.b]);
    if (in.combine == Combine::None) return is;
    bool const other = ((thread.registers[in.c] & 1) != 0) != in.negated;
    switch (in.combine) {
        case Combine::And:
            return is && other;
        case Combine::Or:
            return is || other;
        default:
            return is != other;
    }
}

/// Where a space begins in generic addresses. Global addresses are generic ones.
std::uint64_t window(Block const& block, Thread const& thread, Space space) {
    if (space == Space::Shared) return reinterpret_cast<std::uint64_t>(block.shared.data());
    if (space == Space::Local) return reinterpret_cast<std::uint64_t>(thread.local.data());
    return 0;
}

}  // namespace

void Launch::compute(Thread& thread, Instruction const& in) {
    auto const value = [&](std::uint32_t reg) {
        return reg == kNoRegister ? 0 : thread.registers[reg];
    };
    Operands const operands{value(in.a), value(in.b), value(in.c), value(in.e)};
    thread.registers[in.d] = in.type.kind == Kind::Float ? float_result(in.op, in.type, operands)
                                                         : integer_result(in.op, in.type, operands);
}

void Launch::branch_by_table(Thread& thread, Instruction const& in) {
    std::uint64_t const index = low_bits(thread.registers[in.a], 32);
    if (index >= in.parts.size()) throw PtxError("branch beyond the table");
    thread.next = in.parts[index];
}

void Launch::execute(Block& block, Thread& thread, Instruction const& in) {
    auto& r = thread.registers;
    switch (in.op) {
        case Op::Move:
            r[in.d] = low_bits(r[in.a], in.type.bits);
            break;
        case Op::Pack:
            r[in.d] = packed(thread, in);
            break;
        case Op::Unpack:
            unpack(thread, in);
            break;
        case Op::Select:
            r[in.d] = low_bits((r[in.c] & 1) != 0 ? r[in.a] : r[in.b], in.type.bits);
            break;
        case Op::SetPredicate:
            r[in.d] = predicate_of(thread, in) ? 1 : 0;
            break;
        case Op::Convert:
            r[in.d] = converted(in, r[in.a]);
            break;
        case Op::ToSpace:
            r[in.d] = r[in.a] - window(block, thread, in.space);
            break;
        case Op::FromSpace:
            r[in.d] = r[in.a] + window(block, thread, in.space);
            break;
        case Op::Load:
            load(block, thread, in);
            break;
        case Op::Store:
            store(block, thread, in);
            break;
        case Op::Atomic:
            exchange(block, thread, in);
            if (options_.pause_one_in != 0 && random() % options_.pause_one_in == 0) {
                thread.pauses_until = block.round + random_up_to(options_.pause_rounds);
            }
            break;
        case Op::Fence:
            if (races_ != nullptr) races_->fence(thread.in_grid, in.scope);
            break;
        case Op::Prefetch:
            break;
        case Op::Branch:
            thread.next = in.target;
            break;
        case Op::BranchTable:
            branch_by_table(thread, in);
            break;
        case Op::Return:
            thread.waits = Waits::Ended;
            --block.live;
            break;
        case Op::Trap:
            throw PtxError("trap");
        case Op::BlockBarrier:
            thread.waits = Waits::ForBlock;
            thread.waits_at = &in;
            break;
        case Op::WarpBarrier:
        case Op::Shuffle:
        case Op::Ballot:
        case Op::Any:
        case Op::All:
        case Op::Match:
            meet(block, thread, in);
            break;
        default:
            compute(thread, in);
    }
}

}  // namespace th_ptx
