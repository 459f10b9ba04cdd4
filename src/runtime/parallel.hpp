// Parallel work over ranges, on the library's own threads. All parallel code goes through here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tensorhash::runtime {

/// A borrowed callable: valid only during the call that receives it.
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

/// Runs tasks 0 to count - 1 on up to `num_threads()` threads, the caller's included. Returns when
/// all are done. Rethrows the first exception. Inside a task, runs everything on the calling
/// thread.
void run_tasks(std::size_t count, TaskRef task);

/// CPU devices "cpu:0" to "cpu:63". Each has its own thread pool.
inline constexpr std::size_t kMaxDevices = 64;

/// Runs task i on the threads of devices[i], all at once. Returns when all are done. Divides
/// `num_threads()` among the devices: inside a task it is the device's share, and nested parallel
/// work stays on that device. With no more threads than devices, each task has one thread, and the
/// tasks take turns. Rethrows one exception; tasks that had not started by then may not run.
void run_on_devices(std::span<int const> devices, TaskRef task);

/// How rows are cut into tasks. The cut never shows in results, so it may depend on the number of
/// threads.
struct Chunks {
    std::size_t rows = 0;
    std::size_t size = 1;
    std::size_t count = 0;

    std::size_t begin(std::size_t chunk) const noexcept { return chunk * size; }
    std::size_t end(std::size_t chunk) const noexcept {
        return std::min(rows, begin(chunk) + size);
    }
    /// More than one task: several threads may run at once.
    bool shared() const noexcept { return count > 1; }
};

/// The maximum number of chunks: small enough that per-chunk results fit on a stack.
inline constexpr std::size_t kMaxChunks = 2048;

/// Cuts rows into tasks of at least `grain` rows: few enough that starting them is cheap, enough
/// that threads finish together. Cuts fall on multiples of 64 rows, so that no two tasks write to
/// the same cache line of bytes or the same word of bits.
Chunks cut(std::size_t rows, std::size_t grain);

/// Below this many rows, a second thread costs more than it gains.
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
