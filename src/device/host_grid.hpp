// What a kernel body asks of the host program that runs it as a GPU would. Only declared here: an
// emulator defines it, and no shipped library contains it.
#pragma once

#include <cstdint>

namespace tensorhash::device::host {

/// Where the running thread is in its launch.
struct Place {
    std::uint32_t thread = 0;
    std::uint32_t block = 0;
    std::uint32_t block_size = 0;
    std::uint32_t blocks = 0;
};

Place const& place();
void sync_block();
/// One bit per lane of the mask. All lanes of the mask make the call, with the same mask; the same
/// holds for the next two.
std::uint32_t ballot(std::uint32_t mask, bool yes);
/// The value of lane `from`.
std::uint32_t shuffle(std::uint32_t mask, std::uint32_t value, std::uint32_t from);
void sync_lanes(std::uint32_t mask);
/// Another thread may run before this returns.
void switch_point();

}  // namespace tensorhash::device::host
