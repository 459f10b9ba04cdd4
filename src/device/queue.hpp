// Queue: memory and work of a device, on the stream that the caller uses. A concept, because
// launches are templates over kernel bodies. Work is ordered on its stream; only read_back() waits.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tensorhash::device {

/// From where to where a copy goes.
enum class Copy : unsigned char {
    In,      // host to device; the host's memory may change after the call
    Out,     // device to host
    Within,  // within the device
    Peer,    // to or from another device of the same type
};

template <class Q>
concept Queue =
    requires(Q queue, void* to, void const* from, std::size_t bytes, std::uint32_t* words,
             std::uint64_t* sums, std::uint64_t count, int bits, typename Q::Event event) {
        /// Throws std::bad_alloc. The memory is used on this stream only, or after an event.
        { queue.allocate(bytes) } -> std::same_as<void*>;
        /// Work that is already on the stream may still use the memory. A forked child frees
        /// nothing.
        queue.release(to);
        queue.fill(to, 0, bytes);
        queue.copy(to, from, bytes, Copy::Within);
        /// Copies to the host and waits until the stream has come this far.
        queue.read_back(to, from, bytes);
        /// Replaces counts by the sums of those before them. `sums`, unless null, gets the sum of
        /// all.
        queue.scan(words, count, words);
        queue.scan(sums, count, sums);
        /// The bytes of scratch memory that a sort of `count` pairs needs.
        { queue.sort_bytes(count) } -> std::convertible_to<std::size_t>;
        /// Sorts by the lowest `bits` bits of the first array; the second follows. Stable. `to` is
        /// the scratch memory.
        queue.sort_pairs(words, words, count, bits, to, bytes);
        /// The stream that calls of this thread use now. Its number, for comparison only.
        { queue.stream() } -> std::convertible_to<std::uintptr_t>;
        { queue.record() } -> std::same_as<typename Q::Event>;
        queue.wait(event);
        // And: template <class Body> void launch(std::uint64_t threads, Body const& body).
    };

}  // namespace tensorhash::device
