#include "ptx/launch.hpp"

#include <algorithm>
#include <string>

namespace th_ptx {
namespace {

constexpr std::uint64_t kPoison = 0x0badbadbadbadbadull;  // of registers that were never written

}  // namespace

Launch::Launch(Kernel const& kernel, Grid const& grid, Parameters const& parameters, Arena& arena,
               Races* races, Options const& options)
    : kernel_(kernel), grid_(grid), parameters_(kernel.param_bytes), arena_(arena), races_(races),
      options_(options), random_(options.seed * 0x9e3779b97f4a7c15ull | 1) {
    if (parameters.bytes != kernel.param_bytes) {
        throw PtxError(kernel.name + ": expected " + std::to_string(kernel.param_bytes) +
                       " bytes of parameters, got " + std::to_string(parameters.bytes));
    }
    auto const* const data = static_cast<std::uint8_t const*>(parameters.data);
    std::copy_n(data, parameters.bytes, parameters_.begin());
}

std::uint32_t Launch::random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<std::uint32_t>(random_ >> 32);
}

std::unique_ptr<Block> Launch::make_block() {
    auto block = std::make_unique<Block>();
    block->number = next_block_++;
    block->live = grid_.block_size;
    block->shared.resize(kernel_.shared_bytes);
    block->shared_written.resize(kernel_.shared_bytes);
    block->threads.resize(grid_.block_size);
    for (std::uint32_t i = 0; i < grid_.block_size; ++i) {
        Thread& thread = block->threads[i];
        thread.in_block = i;
        thread.in_grid = block->number * grid_.block_size + i;
        thread.local.resize(kernel_.local_bytes);
        thread.registers.assign(kernel_.registers, kPoison);
        for (Constant const& constant : kernel_.constants) {
            thread.registers[constant.reg] = constant.value;
        }
        std::uint32_t const specials[kSpecials] = {i, grid_.block_size, block->number, grid_.blocks,
                                                   i % kWarp};
        for (std::uint32_t s = 0; s < kSpecials; ++s) {
            if (kernel_.specials[s] != kNoRegister) {
                thread.registers[kernel_.specials[s]] = specials[s];
            }
        }
    }
    return block;
}

std::uint64_t Launch::run() {
    if (races_ != nullptr) races_->begin(grid_.blocks, grid_.block_size);
    std::vector<std::unique_ptr<Block>> resident;
    while (next_block_ < grid_.blocks && resident.size() < options_.resident_blocks) {
        resident.push_back(make_block());
    }
    while (!resident.empty()) {
        for (auto& block : resident) {
            run_round(*block);
            if (block->live == 0 && next_block_ < grid_.blocks) block = make_block();
        }
        std::erase_if(resident, [](auto const& block) { return block->live == 0; });
        if (instructions_ > options_.budget) {
            throw PtxError(kernel_.name + ": endless loop: more than " +
                           std::to_string(options_.budget) + " instructions");
        }
    }
    return instructions_;
}

/// Every thread that does not wait runs for a while, beginning with a random one.
void Launch::run_round(Block& block) {
    ++block.round;
    bool some_can_run = false;
    std::uint32_t const first = random() % grid_.block_size;
    for (std::uint32_t i = 0; i < grid_.block_size; ++i) {
        Thread& thread = block.threads[(first + i) % grid_.block_size];
        if (thread.waits != Waits::No) continue;
        some_can_run = true;
        if (thread.pauses_until <= block.round) {
            run_thread(block, thread, random_up_to(options_.slice));
        }
    }
    if (!some_can_run && block.live > 0) finish_block_barrier(block);
}

void Launch::run_thread(Block& block, Thread& thread, std::uint32_t steps) {
    for (; steps > 0 && thread.waits == Waits::No && thread.pauses_until <= block.round; --steps) {
        Instruction const& in = kernel_.code[thread.next++];
        ++instructions_;
        if (in.predicate != kNoRegister &&
            ((thread.registers[in.predicate] & 1) != 0) == in.skip_if) {
            continue;
        }
        try {
            execute(block, thread, in);
        } catch (PtxError const& error) {
            throw PtxError(kernel_.name + ", thread " + std::to_string(thread.in_block) +
                           " of block " + std::to_string(block.number) + ", " + in.where() + ": " +
                           error.what());
        }
    }
}

/// All threads wait. That is right only if all wait for the block, each warp at one instruction.
void Launch::finish_block_barrier(Block& block) {
    std::vector<std::uint32_t> all;
    for (Thread const& thread : block.threads) {
        if (thread.waits == Waits::ForBlock) all.push_back(thread.in_grid);
        Thread const& first_of_warp = block.threads[thread.in_block / kWarp * kWarp];
        if (thread.waits == Waits::ForBlock && first_of_warp.waits == Waits::ForBlock &&
            thread.waits_at != first_of_warp.waits_at) {
            throw PtxError(kernel_.name + ": barrier mismatch: threads of a warp wait at " +
                           first_of_warp.waits_at->where() + " and at " + thread.waits_at->where());
        }
    }
    if (all.size() != grid_.block_size) {
        std::size_t const ended = grid_.block_size - block.live;
        throw PtxError(kernel_.name + ": barrier mismatch: of " + std::to_string(grid_.block_size) +
                       " threads " + std::to_string(all.size()) + " wait for the block, " +
                       std::to_string(block.live - all.size()) + " wait for lanes and " +
                       std::to_string(ended) + " have ended");
    }
    if (races_ != nullptr) races_->barrier(all);
    for (Thread& thread : block.threads) thread.waits = Waits::No;
}

std::uint64_t launch(Kernel const& kernel, Grid const& grid, Parameters const& parameters,
                     Arena& arena, Races* races, Options const& options) {
    return Launch(kernel, grid, parameters, arena, races, options).run();
}

}  // namespace th_ptx
