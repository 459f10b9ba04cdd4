// Votes, shuffles and barriers of the lanes of a warp.
#include <string>

#include "ptx/launch.hpp"

namespace th_ptx {
namespace {

bool has_lane(std::uint32_t mask, std::uint32_t lane) { return (mask >> lane & 1) != 0; }

/// The lanes of the mask for which the vote holds, as `me` sees it.
std::uint32_t votes(Thread const* warp, Thread const& me) {
    Instruction const& in = *me.waits_at;
    std::uint32_t lanes = 0;
    for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
        if (!has_lane(me.mask, lane)) continue;
        std::uint64_t const value = warp[lane].contributed;
        bool const yes = in.op == Op::Match ? value == me.contributed
                                            : ((value & 1) != 0) != warp[lane].waits_at->negated;
        lanes |= yes ? 1u << lane : 0;
    }
    return lanes;
}

/// From which lane a shuffle reads. False if that lane is out of range: then it reads its own.
bool source_lane(Instruction const& in, Thread const& me, std::uint32_t lane,
                 std::uint32_t& source) {
    auto const b = static_cast<std::uint32_t>(me.registers[in.b]) & 31;
    auto const c = static_cast<std::uint32_t>(me.registers[in.c]);
    std::uint32_t const segment = c >> 8 & 31;
    std::uint32_t const clamp = c & 31;
    std::uint32_t const most = (lane & segment) | (clamp & ~segment);
    bool in_range = false;
    switch (in.shuffle) {
        case ShuffleMode::Up:
            source = lane - b;
            in_range = lane >= b && source >= most;
            break;
        case ShuffleMode::Down:
            source = lane + b;
            in_range = source <= most;
            break;
        case ShuffleMode::Xor:
            source = lane ^ b;
            in_range = source <= most;
            break;
        case ShuffleMode::Index:
            source = (lane & segment) | (b & ~segment);
            in_range = source <= most;
            break;
    }
    if (!in_range) source = lane;
    return in_range;
}

void finish_shuffle(Thread const* warp, Thread& me) {
    Instruction const& in = *me.waits_at;
    std::uint32_t source = 0;
    bool const in_range = source_lane(in, me, me.in_block % kWarp, source);
    if (!has_lane(me.mask, source)) {
        throw PtxError("the shuffle reads from lane " + std::to_string(source) +
                       ", which is not in its mask");
    }
    me.registers[in.d] = warp[source].contributed;
    if (in.second != kNoRegister) me.registers[in.second] = in_range ? 1 : 0;
}

void finish(Thread const* warp, Thread& me) {
    Instruction const& in = *me.waits_at;
    switch (in.op) {
        case Op::Ballot:
        case Op::Match:
            me.registers[in.d] = votes(warp, me);
            break;
        case Op::Any:
            me.registers[in.d] = votes(warp, me) != 0 ? 1 : 0;
            break;
        case Op::All:
            me.registers[in.d] = votes(warp, me) == me.mask ? 1 : 0;
            break;
        case Op::Shuffle:
            finish_shuffle(warp, me);
            break;
        default:
            break;
    }
}

}  // namespace

/// Are all lanes of the thread's mask in this meeting? A lane that waits with a mask without this
/// thread is in a smaller tile and may still come; one with it in the mask must agree with it.
bool Launch::all_are_there(Block& block, Thread const& thread) {
    std::uint32_t const me = thread.in_block % kWarp;
    std::uint32_t const first = thread.in_block - me;
    bool all = true;
    for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
        if (!has_lane(thread.mask, lane)) continue;
        if (first + lane >= grid_.block_size || block.threads[first + lane].waits == Waits::Ended) {
            throw PtxError("the mask contains lane " + std::to_string(lane) + ", which has ended");
        }
        Thread const& mate = block.threads[first + lane];
        if (mate.waits != Waits::ForLanes || !has_lane(mate.mask, me)) {
            all = false;
        } else if (mate.mask != thread.mask || mate.waits_at->opcode != thread.waits_at->opcode) {
            throw PtxError("lanes disagree about mask or operation with " + mate.waits_at->where());
        }
    }
    return all;
}

void Launch::finish_meeting(Block& block, Thread const& last) {
    Thread* const warp = &block.threads[last.in_block / kWarp * kWarp];
    std::uint32_t const mask = last.mask;
    std::vector<std::uint32_t> members;
    for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
        if (!has_lane(mask, lane)) continue;
        finish(warp, warp[lane]);
        members.push_back(warp[lane].in_grid);
    }
    if (last.waits_at->op == Op::WarpBarrier && races_ != nullptr) races_->barrier(members);
    for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
        if (has_lane(mask, lane)) warp[lane].waits = Waits::No;
    }
}

void Launch::meet(Block& block, Thread& thread, Instruction const& in) {
    thread.mask = static_cast<std::uint32_t>(thread.registers[in.e]);
    thread.contributed = in.a == kNoRegister ? 0 : thread.registers[in.a];
    thread.waits_at = &in;
    if (!has_lane(thread.mask, thread.in_block % kWarp)) {
        throw PtxError("the mask does not contain the calling lane");
    }
    thread.waits = Waits::ForLanes;
    if (all_are_there(block, thread)) finish_meeting(block, thread);
}

}  // namespace th_ptx
