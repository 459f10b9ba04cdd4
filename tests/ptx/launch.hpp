// One running launch: its blocks, threads and schedule.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptx/machine.hpp"

namespace th_ptx {

inline constexpr std::uint32_t kWarp = 32;

enum class Waits : std::uint8_t { No, ForBlock, ForLanes, Ended };

struct Thread {
    std::vector<std::uint64_t> registers;
    std::vector<std::uint8_t> local;
    std::uint32_t next = 0;      // instruction
    std::uint32_t in_block = 0;  // the thread's number in its block
    std::uint32_t in_grid = 0;
    Waits waits = Waits::No;
    Instruction const* waits_at = nullptr;
    std::uint32_t mask = 0;         // the lanes that it waits for
    std::uint64_t contributed = 0;  // its value in a vote or shuffle
    std::uint64_t pauses_until = 0;
};

struct Block {
    std::vector<Thread> threads;
    std::vector<std::uint8_t> shared;
    std::vector<std::uint8_t> shared_written;
    std::uint32_t number = 0;
    std::uint32_t live = 0;  // threads that have not ended
    std::uint64_t round = 0;
};

class Launch {
public:
    Launch(Kernel const& kernel, Grid const& grid, Parameters const& parameters, Arena& arena,
           Races* races, Options const& options);

    std::uint64_t run();

private:
    /// Where an access goes. Races are not looked for in memory that one thread owns.
    struct Place {
        std::uint8_t* bytes;
        std::size_t race_offset;
        bool is_watched;
    };
    enum class Use : std::uint8_t { Read, Write, ReadWrite };

    // launch.cpp: the schedule
    std::uint32_t random();
    std::uint32_t random_up_to(std::uint32_t most) { return 1 + random() % most; }
    std::unique_ptr<Block> make_block();
    void run_round(Block& block);
    void run_thread(Block& block, Thread& thread, std::uint32_t steps);
    void finish_block_barrier(Block& block);

    // execute.cpp: one instruction
    void execute(Block& block, Thread& thread, Instruction const& in);
    void compute(Thread& thread, Instruction const& in);
    void branch_by_table(Thread& thread, Instruction const& in);

    // memory.cpp
    Place place(Block& block, Thread& thread, Instruction const& in, std::uint32_t bytes, Use use);
    Place place_in_shared(Block& block, std::uint64_t offset, std::uint32_t bytes, Use use);
    void load(Block& block, Thread& thread, Instruction const& in);
    void store(Block& block, Thread& thread, Instruction const& in);
    void exchange(Block& block, Thread& thread, Instruction const& in);

    // warp.cpp
    void meet(Block& block, Thread& thread, Instruction const& in);
    bool all_are_there(Block& block, Thread const& thread);
    void finish_meeting(Block& block, Thread const& last);

    Kernel const& kernel_;
    Grid grid_;
    std::vector<std::uint8_t> parameters_;
    Arena& arena_;
    Races* races_;
    Options options_;
    std::uint64_t random_;
    std::uint32_t next_block_ = 0;
    std::uint64_t instructions_ = 0;
};

}  // namespace th_ptx
