// The scheduler: resident blocks take turns, and so do the fibers of a block. Boost.Context
// switches stacks.
#include "emulate/fibers.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <cstring>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "emulate/fiber_stack.hpp"

namespace tensorhash::emulate {
namespace {

namespace context = boost::context::detail;

constexpr std::uint32_t kWarp = Grid::kWarpSize;
constexpr std::uint32_t kLongestNap = 64;
constexpr unsigned char kUnwritten = 0xcd;

enum class Waits : unsigned char { No, ForBlock, ForLanes, Done };
enum class Call : unsigned char { Ballot, Shuffle, Sync };
constexpr char const* kCallNames[] = {"ballot", "shuffle", "sync"};

/// Thrown by fail() to leave a body.
struct Stop {};

/// What a lane brings to a collective call.
struct Collective {
    Call call = Call::Ballot;
    std::uint32_t mask = 0;
    std::uint32_t value = 0;
    std::uint32_t from = 0;
};

struct Fiber {
    device::host::Place place;
    FiberStack stack;
    context::fcontext_t context = nullptr;
    Waits waits = Waits::Done;
    Collective collective;     // if it waits for lanes
    std::uint32_t result = 0;  // of its last collective
    std::uint64_t wakes = 0;   // it sleeps until this round of its block
    Order order = Order::Yes;  // of its last switch: a barrier orders memory, a nap does not
};

struct Block {
    std::vector<Fiber> fibers;
    std::vector<unsigned char> shared;
    std::uint64_t round = 0;
    std::uint32_t at_barrier = 0;
    std::uint32_t done = 0;

    bool is_over() const { return done == fibers.size(); }
};

/// One launch. `current` is the one that runs on this thread.
class Machine {
public:
    Machine(Grid grid, std::size_t shared_bytes, std::function<void(void*)> const& body,
            Options const& options)
        : grid_(grid), body_(body), options_(options), random_(options.seed * 2 + 1),
          blocks_(std::min(std::max(options.resident, 1u), grid.blocks)) {
        for (Block& block : blocks_) {
            block.shared.resize(std::max<std::size_t>(shared_bytes, 1));
            block.fibers.resize(grid.threads);
        }
    }

    void run();
    Fiber& running() { return *running_; }

    std::uint32_t collective(Collective const& mine);
    void sync_block();
    void switch_point();

private:
    [[noreturn]] void fail(std::string const& what);
    void spend();
    void start(Block& block, std::uint32_t number);
    void run_round(Block& block);
    void resume(Fiber& fiber);
    void leave(Order order);
    void release_barrier(Block& block);
    bool all_came(Fiber* warp, std::uint32_t lane, Collective const& mine);
    std::uint32_t random(std::uint32_t below);
    static void enter(context::transfer_t from);

    Grid grid_;
    std::function<void(void*)> const& body_;
    Options options_;
    std::uint64_t random_;
    std::uint64_t spent_ = 0;
    std::vector<Block> blocks_;
    Block* block_ = nullptr;
    Fiber* running_ = nullptr;
    context::fcontext_t scheduler_ = nullptr;
    SchedulerStack scheduler_stack_;
    std::string error_;
};

thread_local Machine* current = nullptr;

/// splitmix64: every seed gives another order.
std::uint32_t Machine::random(std::uint32_t below) {
    std::uint64_t x = random_ += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return static_cast<std::uint32_t>((x >> 32) % below);
}

/// Ends the launch: no fiber runs again. The failing fiber unwinds its stack. Bodies own nothing,
/// so those of the others are just dropped.
void Machine::fail(std::string const& what) {
    auto const& place = running_->place;
    error_ = what + " (block " + std::to_string(place.block) + ", thread " +
             std::to_string(place.thread) + ")";
    throw Stop{};
}

void Machine::spend() {
    if (++spent_ > options_.budget) {
        fail("the kernel spent its budget of " + std::to_string(options_.budget) +
             " accesses: does a loop never end?");
    }
}

void Machine::enter(context::transfer_t from) {
    Machine& machine = *current;
    machine.running_->stack.entered(machine.scheduler_stack_);
    machine.scheduler_ = from.fctx;
    try {
        machine.body_(machine.block_->shared.data());
    } catch (Stop const&) {
        // fail() has recorded the error.
    }
    machine.running_->waits = Waits::Done;
    ++machine.block_->done;
    machine.running_->stack.ends();
    machine.leave(Order::Yes);
}

/// Back to the scheduler; returns when it resumes this fiber.
void Machine::leave(Order order) {
    Fiber& self = *running_;
    self.order = order;
    self.stack.leaves(scheduler_stack_, order);
    scheduler_ = context::jump_fcontext(scheduler_, nullptr).fctx;
    self.stack.returned();
}

void Machine::resume(Fiber& fiber) {
    running_ = &fiber;
    scheduler_stack_.leaves(fiber.stack, fiber.order);
    fiber.context = context::jump_fcontext(fiber.context, nullptr).fctx;
    scheduler_stack_.returned();
}

void Machine::start(Block& block, std::uint32_t number) {
    std::memset(block.shared.data(), kUnwritten, block.shared.size());
    block.round = 0;
    block.at_barrier = 0;
    block.done = 0;
    for (std::uint32_t i = 0; i < grid_.threads; ++i) {
        Fiber& fiber = block.fibers[i];
        fiber.place = {i, number, grid_.threads, grid_.blocks};
        fiber.context = context::make_fcontext(fiber.stack.fresh(), FiberStack::kBytes, enter);
        fiber.waits = Waits::No;
        fiber.wakes = 0;
        fiber.order = Order::Yes;
    }
}

void Machine::run() {
    Machine* const outer = current;
    current = this;
    std::uint32_t next = 0;
    for (Block& block : blocks_) {
        start(block, next++);
    }
    std::uint32_t over = 0;
    while (over < grid_.blocks && error_.empty()) {
        Block& block = blocks_[random(static_cast<std::uint32_t>(blocks_.size()))];
        if (block.is_over()) {
            continue;
        }
        run_round(block);
        if (block.is_over() && error_.empty()) {
            ++over;
            if (next < grid_.blocks) {
                start(block, next++);
            }
        }
    }
    current = outer;
    if (!error_.empty()) {
        throw KernelError(error_);
    }
}

/// Runs each fiber that can go on, in random order, until its next switch.
void Machine::run_round(Block& block) {
    block_ = &block;
    ++block.round;
    auto const count = static_cast<std::uint32_t>(block.fibers.size());
    bool const shuffled = options_.switch_one_in != 0;
    std::uint32_t const first = shuffled ? random(count) : 0;
    std::uint32_t step = shuffled ? random(count) | 1 : 1;
    while (std::gcd(step, count) != 1) {
        step += 2;
    }
    bool can_go_on = false;
    for (std::uint32_t i = 0; i < count; ++i) {
        Fiber& fiber = block.fibers[(first + std::uint64_t{i} * step) % count];
        if (fiber.waits != Waits::No) {
            continue;
        }
        can_go_on = true;
        if (fiber.wakes <= block.round) {
            resume(fiber);
        }
        if (!error_.empty()) {
            return;
        }
    }
    if (!can_go_on && !block.is_over()) {
        release_barrier(block);
    }
}

/// All fibers wait. That is right only if they all wait for the block.
void Machine::release_barrier(Block& block) {
    if (block.at_barrier != block.fibers.size()) {
        error_ = "deadlock in block " + std::to_string(block.fibers[0].place.block) + ": of " +
                 std::to_string(block.fibers.size()) + " threads " +
                 std::to_string(block.at_barrier) + " wait for the block, " +
                 std::to_string(block.done) + " have returned, the others wait for lanes";
        return;
    }
    block.at_barrier = 0;
    for (Fiber& fiber : block.fibers) {
        fiber.waits = Waits::No;
    }
}

void Machine::sync_block() {
    spend();
    running_->waits = Waits::ForBlock;
    ++block_->at_barrier;
    leave(Order::Yes);
}

/// Other fibers run first now and then. A fiber that naps finds a changed world: without naps,
/// random switches are too fair to find most races.
void Machine::switch_point() {
    spend();
    if (options_.nap_one_in != 0 && random(options_.nap_one_in) == 0) {
        running_->wakes = block_->round + 1 + random(kLongestNap);
        leave(Order::No);
    } else if (options_.switch_one_in != 0 && random(options_.switch_one_in) == 0) {
        leave(Order::No);
    }
}

/// Have all lanes of the mask made this call? Only a lane that waits with a mask that contains the
/// caller can disagree with it. Others are still in a smaller tile.
bool Machine::all_came(Fiber* warp, std::uint32_t lane, Collective const& mine) {
    std::string const name = kCallNames[static_cast<int>(mine.call)];
    if ((mine.mask >> lane & 1) == 0) {
        fail(name + ": the calling lane is not in its own mask");
    }
    bool all = true;
    for (std::uint32_t other = 0; other < kWarp; ++other) {
        if ((mine.mask >> other & 1) == 0) {
            continue;
        }
        if (running_->place.thread - lane + other >= block_->fibers.size()) {
            fail(name + ": the mask names a lane that the block does not have");
        }
        Fiber const& fiber = warp[other];
        Collective const& theirs = fiber.collective;
        if (fiber.waits == Waits::Done) {
            fail(name + ": the mask names a lane that has returned");
        } else if (fiber.waits != Waits::ForLanes || (theirs.mask >> lane & 1) == 0) {
            all = false;
        } else if (theirs.mask != mine.mask || theirs.call != mine.call) {
            fail("lanes meet in " + name + " and " + kCallNames[static_cast<int>(theirs.call)] +
                 ", or with different masks");
        }
    }
    return all;
}

std::uint32_t result_for(Collective const& lane, Fiber const* warp, std::uint32_t votes) {
    constexpr std::uint32_t kPoison = 0xdeadbeef;  // a GPU promises no value here
    if (lane.call == Call::Ballot) {
        return votes;
    }
    bool const there = lane.from < kWarp && (lane.mask >> lane.from & 1) != 0;
    return there ? warp[lane.from].collective.value : kPoison;
}

std::uint32_t Machine::collective(Collective const& mine) {
    spend();
    Fiber& self = *running_;
    std::uint32_t const lane = self.place.thread % kWarp;
    Fiber* const warp = &block_->fibers[self.place.thread - lane];
    self.collective = mine;
    self.waits = Waits::ForLanes;
    if (all_came(warp, lane, mine)) {
        std::uint32_t votes = 0;
        for (std::uint32_t i = 0; i < kWarp; ++i) {
            if ((mine.mask >> i & 1) != 0 && warp[i].collective.value != 0) {
                votes |= 1u << i;
            }
        }
        for (std::uint32_t i = 0; i < kWarp; ++i) {
            if ((mine.mask >> i & 1) != 0) {
                warp[i].result = result_for(warp[i].collective, warp, votes);
                warp[i].waits = Waits::No;
            }
        }
    }
    leave(mine.call == Call::Sync ? Order::Yes : Order::No);
    return self.result;
}

}  // namespace

void run_grid(Grid grid, std::size_t shared_bytes, std::function<void(void* shared)> const& body,
              Options const& options) {
    if (grid.blocks != 0 && grid.threads != 0) {
        Machine(grid, shared_bytes, body, options).run();
    }
}

}  // namespace tensorhash::emulate

namespace tensorhash::device::host {

using emulate::Call;
using emulate::current;

Place const& place() { return current->running().place; }

void sync_block() { current->sync_block(); }

std::uint32_t ballot(std::uint32_t mask, bool yes) {
    return current->collective({Call::Ballot, mask, yes ? 1u : 0u, 0});
}

std::uint32_t shuffle(std::uint32_t mask, std::uint32_t value, std::uint32_t from) {
    return current->collective({Call::Shuffle, mask, value, from});
}

void sync_lanes(std::uint32_t mask) { current->collective({Call::Sync, mask, 0, 0}); }

void switch_point() {
    if (current != nullptr) {
        current->switch_point();
    }
}

}  // namespace tensorhash::device::host
