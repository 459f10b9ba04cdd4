// Copies and clears memory on all threads. Memory larger than the cache is written with streaming
// stores.
#include <cstdint>
#include <cstring>

#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "runtime/streaming.hpp"

namespace tensorhash::runtime {
namespace {

constexpr std::size_t kGrainBytes = std::size_t{1} << 20;

// Larger than caches. Streaming clears 256 MB on two threads in 6 ms instead of 13, and copies them
// in 13 ms instead of 20.
constexpr std::size_t kPastCache = std::size_t{64} << 20;

bool can_stream(unsigned char const* to, std::size_t bytes) {
    return bytes >= kPastCache && reinterpret_cast<std::uintptr_t>(to) % kStreamStep == 0 &&
           bytes % kStreamStep == 0;
}

/// Calls plain(begin, end) or streamed(begin, end) for the parts of the memory at `to`.
template <class Plain, class Streamed>
void write_parts(unsigned char* to, std::size_t bytes, Plain const& plain,
                 Streamed const& streamed) {
    if (bytes == 0) {
        return;
    }
    // Cuts fall on multiples of 64 bytes.
    if (can_stream(to, bytes)) {
        for_ranges(bytes, kGrainBytes, [&](std::size_t begin, std::size_t end) {
            streamed(begin, end);
            end_stream();
        });
    } else {
        for_ranges(bytes, kGrainBytes, plain);
    }
}

}  // namespace

void copy_bytes(void* to, void const* from, std::size_t bytes) {
    auto* const target = static_cast<unsigned char*>(to);
    auto const* const source = static_cast<unsigned char const*>(from);
    write_parts(
        target, bytes,
        [&](std::size_t begin, std::size_t end) {
            std::memcpy(target + begin, source + begin, end - begin);
        },
        [&](std::size_t begin, std::size_t end) {
            stream_bytes(target + begin, source + begin, end - begin);
        });
}

void zero_bytes(void* at, std::size_t bytes) {
    auto* const target = static_cast<unsigned char*>(at);
    write_parts(
        target, bytes,
        [&](std::size_t begin, std::size_t end) { std::memset(target + begin, 0, end - begin); },
        [&](std::size_t begin, std::size_t end) { stream_zeros(target + begin, end - begin); });
}

}  // namespace tensorhash::runtime
