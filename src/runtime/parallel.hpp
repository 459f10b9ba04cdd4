// Work over ranges on the library's own threads. The only place that knows threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tensorhash::runtime {

/// A borrowed callable: valid while the call that was given it runs.
class TaskRef {
public:
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, TaskRef>)
    TaskRef(F&& f) noexcept
        : object_(const_cast<void*>(static_cast<void const*>(&f))),
          call_([](void* object, std::size_t task) {
              (*static_cast<std::remove_reference_t<F>*>(object))(task);
          }) {}
    void operator()(std::size_t task) const { call_(object_, task); }

private:
    void* object_;
    void (*call_)(void*, std::size_t);
};

/// Runs task 0 .. count-1, on as many threads as `num_threads()` says, the caller's among them; returns when all are
/// done. The first exception is rethrown here. Called from inside a task it runs everything on the spot.
void run_tasks(std::size_t count, TaskRef task);

/// CPU devices "cpu:0" to "cpu:63", each a pool of threads of its own.
inline constexpr std::size_t kMaxDevices = 64;

/// Runs task i on the threads of devices[i], all at once; returns when all are done. `num_threads()` is divided among
/// them, and inside a task it is the device's part: what the task runs in parallel runs there. With fewer threads than
/// devices, each device's task has one thread and they take turns. The first device's exception is rethrown.
void run_on_devices(std::span<int const> devices, TaskRef task);

/// How rows are cut into tasks. The cut never shows in results, so it may follow the number of threads.
struct Chunks {
    std::size_t rows = 0;
    std::size_t size = 1;
    std::size_t count = 0;

    std::size_t begin(std::size_t chunk) const noexcept { return chunk * size; }
    std::size_t end(std::size_t chunk) const noexcept {
        return std::min(rows, begin(chunk) + size);
    }
    /// More than one task: several threads may be at work at once.
    bool shared() const noexcept { return count > 1; }
};

/// No cut has more chunks, so that what they report fits on a stack.
inline constexpr std::size_t kMaxChunks = 2048;

/// Tasks of at least `grain` rows, few enough that starting them is cheap, enough that threads end together.
/// Cuts fall on multiples of 64 rows, so that no two tasks write one cache line of bytes or one word of bits.
Chunks cut(std::size_t rows, std::size_t grain);

/// Rows below which a second thread costs more than it brings.
inline constexpr std::size_t kGrain = 4096;

/// Calls body(chunk, begin, end) for each chunk.
template <class Body>
void for_chunks(Chunks const& chunks, Body&& body) {
    if (chunks.count == 1) {
        body(std::size_t{0}, std::size_t{0}, chunks.rows);
        return;
    }
    run_tasks(chunks.count,
              [&](std::size_t chunk) { body(chunk, chunks.begin(chunk), chunks.end(chunk)); });
}

/// Calls body(begin, end) over [0, rows).
template <class Body>
void for_ranges(std::size_t rows, std::size_t grain, Body&& body) {
    for_chunks(cut(rows, grain),
               [&](std::size_t, std::size_t begin, std::size_t end) { body(begin, end); });
}

}  // namespace tensorhash::runtime
