#include "ptx/races.hpp"

#include <algorithm>

namespace th_ptx {
namespace {

bool is_strong(Instruction const& in) { return in.order != Order::Weak; }

bool acquires(Instruction const& in) {
    return in.order == Order::Acquire || in.order == Order::AcquireRelease;
}
bool releases(Instruction const& in) {
    return in.order == Order::Release || in.order == Order::AcquireRelease;
}

}  // namespace

void Races::begin(std::string const& kernel, std::uint32_t blocks, std::uint32_t block_size) {
    kernel_ = kernel;
    std::uint32_t const threads = blocks * block_size;
    ++launch_;
    block_size_ = block_size;
    clocks_.assign(threads, Clock(threads, 0));
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        clocks_[thread][thread] = 1;
    }
    fenced_.assign(threads, {});
    observed_.assign(threads, {});
    released_.clear();
    shared_.clear();
}

Races::Byte& Races::byte(std::size_t at) {
    if (at < bytes_ && pages_[at / kPage] == nullptr) {
        pages_[at / kPage] = std::make_unique<Byte[]>(kPage);
    }
    Byte& byte = at < bytes_ ? pages_[at / kPage][at % kPage] : shared_[at];
    if (byte.launch != launch_) {
        byte.launch = launch_;
        byte.accesses.clear();
    }
    return byte;
}

bool Races::happened_before(Epoch const& earlier, std::uint32_t thread) const {
    return earlier.thread == thread || earlier.time <= clocks_[thread][earlier.thread];
}

bool Races::morally_strong(Epoch const& earlier, Epoch const& later) const {
    Instruction const& a = *earlier.instruction;
    Instruction const& b = *later.instruction;
    bool const within_a_block = a.scope == Scope::Block || b.scope == Scope::Block;
    bool const in_scope = !within_a_block || block_of(earlier.thread) == block_of(later.thread);
    return is_strong(a) && is_strong(b) && in_scope && earlier.at == later.at &&
           earlier.bytes == later.bytes;
}

bool Races::races(Epoch const& earlier, Epoch const& later) const {
    return (earlier.is_write || later.is_write) && !morally_strong(earlier, later) &&
           !happened_before(earlier, later.thread);
}

/// Does whatever races with `earlier` from now on also race with `later`?
bool Races::replaces(Epoch const& later, Epoch const& earlier) const {
    Instruction const& a = *earlier.instruction;
    Instruction const& b = *later.instruction;
    bool const is_as_weak =
        !is_strong(b) || (is_strong(a) && a.scope == b.scope && earlier.at == later.at &&
                          earlier.bytes == later.bytes);
    return is_as_weak && (later.is_write || !earlier.is_write) &&
           happened_before(earlier, later.thread);
}

void Races::look_at(Access const& access, bool is_write) {
    Epoch const now{access.thread,      clocks_[access.thread][access.thread],
                    access.instruction, access.at,
                    access.bytes,       is_write};
    for (std::size_t at = access.at; at < access.at + access.bytes; ++at) {
        auto& accesses = byte(at).accesses;
        for (Epoch const& earlier : accesses) {
            if (races(earlier, now)) {
                found_.insert(kernel_ + ": " + earlier.instruction->where() + " and " +
                              now.instruction->where());
            }
        }
        std::erase_if(accesses, [&](Epoch const& earlier) { return replaces(now, earlier); });
        accesses.push_back(now);
    }
}

void Races::join(Clock& to, Clock const& from) {
    if (to.size() < from.size()) to.resize(from.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void Races::synchronize_read(Access const& access) {
    if (!is_strong(*access.instruction)) return;
    auto const found = released_.find(access.at);
    if (found == released_.end()) return;
    std::uint32_t const block = block_of(access.thread);
    bool const in_scope = found->second.block == kAnyBlock || found->second.block == block;
    if (!in_scope) return;
    // A relaxed read followed by a fence also acquires.
    join(acquires(*access.instruction) ? clocks_[access.thread] : observed_[access.thread],
         found->second.clock);
}

void Races::publish(Access const& access, Clock const& clock, bool is_atomic) {
    Released& released = released_[access.at];
    // An atomic continues the release sequence that it reads from; a store begins a new one.
    if (!is_atomic) released.clock.clear();
    join(released.clock, clock);
    released.block =
        access.instruction->scope == Scope::Block ? block_of(access.thread) : kAnyBlock;
}

void Races::synchronize_write(Access const& access, bool is_atomic) {
    if (!is_strong(*access.instruction)) return;
    std::uint32_t const thread = access.thread;
    if (releases(*access.instruction)) {
        publish(access, clocks_[thread], is_atomic);
        ++clocks_[thread][thread];
    } else if (!fenced_[thread].empty()) {
        publish(access, fenced_[thread], is_atomic);
    } else if (!is_atomic) {
        released_.erase(access.at);
    }
}

void Races::fence(std::uint32_t thread, Scope scope) {
    // A fence of a block is weaker than what is counted here. No kernel needs one: refuse it.
    if (scope == Scope::Block) throw PtxError("fences of a block are not supported");
    join(clocks_[thread], observed_[thread]);
    fenced_[thread] = clocks_[thread];
    ++clocks_[thread][thread];
}

void Races::barrier(std::vector<std::uint32_t> const& threads) {
    Clock all;
    for (std::uint32_t const thread : threads) join(all, clocks_[thread]);
    for (std::uint32_t const thread : threads) {
        clocks_[thread] = all;
        ++clocks_[thread][thread];
    }
}

}  // namespace th_ptx
