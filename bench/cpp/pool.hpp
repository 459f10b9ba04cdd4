// Threads that sleep between calls, for the gather and for peers without their own threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

/// Runs a body over ranges of rows on a fixed number of threads, including the caller's.
class Pool {
public:
    using Body = std::function<void(std::size_t begin, std::size_t end)>;

    explicit Pool(int threads) {
        for (int i = 1; i < threads; ++i) {
            helpers_.emplace_back([this] { serve(); });
        }
    }
    Pool(Pool const&) = delete;
    Pool& operator=(Pool const&) = delete;
    ~Pool() {
        stop_.store(true, std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
        turn_.notify_all();
        for (auto& helper : helpers_) {
            helper.join();
        }
    }

    int threads() const noexcept { return static_cast<int>(helpers_.size()) + 1; }

    void run(std::size_t rows, Body const& body) {
        // The library's own rule: with fewer rows, a second thread costs more than it gains.
        if (helpers_.empty() || rows < 2 * kGrain) {
            body(0, rows);
            return;
        }
        body_ = &body;
        rows_ = rows;
        // Eight pieces per thread, so that threads end together, and whole cache lines of outputs.
        step_ = std::max(kGrain, rows / (helpers_.size() + 1) / 8) / 64 * 64;
        next_.store(0, std::memory_order_relaxed);
        busy_.store(helpers_.size(), std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
        turn_.notify_all();
        work();
        // Spin, because the others have at most one piece left, which takes less than a sleep.
        // Yield later, because they may share our processor.
        for (int spins = 0; busy_.load(std::memory_order_acquire) != 0; ++spins) {
            if (spins >= kSpins) {
                std::this_thread::yield();
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }  // pairs with the release in serve()
    }

private:
    static constexpr std::size_t kGrain = 4096;
    static constexpr int kSpins = 1000;

    void work() {
        for (;;) {
            std::size_t const begin = next_.fetch_add(step_, std::memory_order_relaxed);
            if (begin >= rows_) {
                return;
            }
            (*body_)(begin, std::min(rows_, begin + step_));
        }
    }

    void serve() {
        std::uint32_t seen = 0;
        for (;;) {
            turn_.wait(seen, std::memory_order_acquire);
            seen = turn_.load(std::memory_order_acquire);
            if (stop_.load(std::memory_order_relaxed)) {
                return;
            }
            work();
            busy_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::atomic<std::uint32_t> turn_{0};
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> busy_{0};
    std::atomic<bool> stop_{false};
    Body const* body_ = nullptr;
    std::size_t rows_ = 0;
    std::size_t step_ = 1;
    std::vector<std::thread> helpers_;
};

}  // namespace bench
