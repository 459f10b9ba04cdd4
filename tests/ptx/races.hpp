// Finds data races by PTX's memory model. Two accesses to the same byte, one of them a write, race
// unless one happens before the other or they are morally strong: both strong, each within the
// other's scope, and over exactly the same bytes. Barriers order memory, and so do fences and
// release-acquire pairs; votes and shuffles do not. Launches follow one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ptx/program.hpp"

namespace th_ptx {

class Races {
public:
    /// `bytes` of global memory. Shared memory has offsets beyond them.
    explicit Races(std::size_t bytes) : bytes_(bytes), pages_(bytes / kPage + 1) {}

    /// A launch begins. Everything before it has happened.
    void begin(std::uint32_t blocks, std::uint32_t block_size);

    /// One scalar access. A vector is several of them.
    struct Access {
        std::uint32_t thread;  // in the launch
        std::size_t at;
        std::uint8_t bytes;
        Instruction const* instruction;
    };
    void read(Access const& access);
    void write(Access const& access);

    // Synchronisation, by the order and scope of the instruction. Call before read() or write().
    void synchronize_read(Access const& access);
    void synchronize_write(Access const& access, bool is_atomic);
    void fence(std::uint32_t thread, Scope scope);
    void barrier(std::vector<std::uint32_t> const& threads);

    /// A block has ended, and its shared memory belongs to the next one.
    std::size_t shared_offset(std::uint32_t block) const {
        return bytes_ + std::size_t{block} * kMostShared;
    }

    /// One sentence per pair of instructions.
    std::set<std::string> const& found() const { return found_; }

private:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::size_t kMostShared = std::size_t{1} << 20;

    using Clock = std::vector<std::uint32_t>;

    /// One access, as a byte remembers it.
    struct Epoch {
        std::uint32_t thread = 0;
        std::uint32_t time = 0;  // 0: no access
        Instruction const* instruction = nullptr;
        std::size_t at = 0;  // first byte of the access
        std::uint8_t bytes = 0;
    };
    struct Byte {
        std::uint32_t launch = 0;
        Epoch written;
        std::vector<Epoch> readers;  // since the last write, one per thread and strength
    };
    /// What a later acquire of this word learns.
    struct Released {
        Clock clock;
        std::uint32_t block = kAnyBlock;  // a release within a block is for that block only
    };
    static constexpr std::uint32_t kAnyBlock = 0xffffffffu;

    Byte& byte(std::size_t at);
    Epoch epoch(Access const& access) const;
    std::uint32_t block_of(std::uint32_t thread) const { return thread / block_size_; }
    bool happened_before(Epoch const& earlier, std::uint32_t thread) const;
    bool morally_strong(Epoch const& earlier, Access const& later) const;
    void judge(Epoch const& earlier, Access const& later);
    void publish(Access const& access, Clock const& clock, bool is_atomic);
    static void join(Clock& to, Clock const& from);

    std::size_t bytes_;
    std::vector<std::unique_ptr<Byte[]>> pages_;
    std::unordered_map<std::size_t, Byte> shared_;
    std::vector<Clock> clocks_;    // what each thread knows of the others
    std::vector<Clock> fenced_;    // its clock at its last fence
    std::vector<Clock> observed_;  // what its next fence will make it know
    std::unordered_map<std::size_t, Released> released_;
    std::uint32_t launch_ = 0;
    std::uint32_t block_size_ = 1;
    std::set<std::string> found_;
};

}  // namespace th_ptx
