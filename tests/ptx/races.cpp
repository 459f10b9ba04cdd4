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

void Races::begin(std::uint32_t blocks, std::uint32_t block_size) {
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
        byte.written = {};
        byte.readers.clear();
    }
    return byte;
}

Races::Epoch Races::epoch(Access const& access) const {
    return {access.thread, clocks_[access.thread][access.thread], access.instruction, access.at,
            access.bytes};
}

bool Races::happened_before(Epoch const& earlier, std::uint32_t thread) const {
    return earlier.time == 0 || earlier.thread == thread ||
           earlier.time <= clocks_[thread][earlier.thread];
}

bool Races::morally_strong(Epoch const& earlier, Access const& later) const {
    Instruction const& a = *earlier.instruction;
    Instruction const& b = *later.instruction;
    bool const within_a_block = a.scope == Scope::Block || b.scope == Scope::Block;
    bool const in_scope = !within_a_block || block_of(earlier.thread) == block_of(later.thread);
    return is_strong(a) && is_strong(b) && in_scope && earlier.at == later.at &&
           earlier.bytes == later.bytes;
}

void Races::judge(Epoch const& earlier, Access const& later) {
    if (happened_before(earlier, later.thread) || morally_strong(earlier, later)) return;
    found_.insert(earlier.instruction->where() + " and " + later.instruction->where());
}

void Races::read(Access const& access) {
    Epoch const now = epoch(access);
    for (std::size_t at = access.at; at < access.at + access.bytes; ++at) {
        Byte& b = byte(at);
        judge(b.written, access);
        auto const same = [&](Epoch const& e) {
            return e.thread == now.thread && e.at == now.at && e.bytes == now.bytes &&
                   is_strong(*e.instruction) == is_strong(*now.instruction) &&
                   e.instruction->scope == now.instruction->scope;
        };
        auto const known = std::find_if(b.readers.begin(), b.readers.end(), same);
        if (known != b.readers.end()) {
            *known = now;
        } else {
            b.readers.push_back(now);
        }
    }
}

void Races::write(Access const& access) {
    for (std::size_t at = access.at; at < access.at + access.bytes; ++at) {
        Byte& b = byte(at);
        judge(b.written, access);
        for (Epoch const& reader : b.readers) judge(reader, access);
        b.readers.clear();
        b.written = epoch(access);
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
