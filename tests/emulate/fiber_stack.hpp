// Stacks of fibers, and what the sanitizers must hear when one is left for another. The thread
// sanitizer takes each stack for a thread of its own.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// fibers.cpp itself is not compiled with the thread sanitizer: its own state is no race.
#if defined(TH_FIBERS_FOR_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace tensorhash::emulate {

/// Does a switch order the memory of both sides?
enum class Order : unsigned char { No, Yes };

#if defined(TH_FIBERS_FOR_TSAN)
using TsanFiber = void*;
inline TsanFiber new_tsan_fiber() { return __tsan_create_fiber(0); }
inline TsanFiber running_tsan_fiber() { return __tsan_get_current_fiber(); }
inline void switch_to(TsanFiber fiber, Order order) {
    __tsan_switch_to_fiber(fiber, order == Order::Yes ? 0 : __tsan_switch_to_fiber_no_sync);
}
inline void end(TsanFiber fiber) { __tsan_destroy_fiber(fiber); }
#else
struct TsanFiber {};
inline TsanFiber new_tsan_fiber() { return {}; }
inline TsanFiber running_tsan_fiber() { return {}; }
inline void switch_to(TsanFiber, Order) {}
inline void end(TsanFiber) {}
#endif

/// Where the scheduler was when a fiber took over.
class SchedulerStack {
public:
    template <class Stack>
    void leaves(Stack const& to, Order order) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&fake_, to.bottom(), Stack::kBytes);
#endif
        switch_to(to.tsan(), order);
    }
    void returned() {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
#endif
    }

private:
    friend class FiberStack;
    void const* bottom_ = nullptr;
    std::size_t bytes_ = 0;
    void* fake_ = nullptr;
    [[no_unique_address]] TsanFiber tsan_ = running_tsan_fiber();
};

/// Pages that are mapped when a fiber first touches them, and kept for the thread's next fiber.
class FiberStack {
public:
    static constexpr std::size_t kBytes = std::size_t{64} << 10;

    FiberStack() {
        auto& kept = kept_stacks().stacks;
        if (!kept.empty()) {
            bottom_ = kept.back().bottom;
            tsan_ = kept.back().tsan;
            kept.pop_back();
            return;
        }
        void* const p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            throw std::bad_alloc();
        }
        bottom_ = p;
        tsan_ = new_tsan_fiber();
    }
    FiberStack(FiberStack&& other) noexcept
        : bottom_(std::exchange(other.bottom_, nullptr)), tsan_(other.tsan_) {}
    ~FiberStack() {
        if (bottom_ != nullptr) {
            kept_stacks().stacks.push_back({bottom_, tsan_});
        }
    }
    FiberStack& operator=(FiberStack&&) = delete;

    void const* bottom() const { return bottom_; }
    TsanFiber tsan() const { return tsan_; }
    /// The top of the stack, for a new fiber.
    void* fresh() {
        fake_ = nullptr;
        ended_ = false;
#if defined(__SANITIZE_ADDRESS__)
        // The last fiber may have been dropped in the middle of a function.
        __asan_unpoison_memory_region(bottom_, kBytes);
#endif
        return static_cast<char*>(bottom_) + kBytes;
    }
    void entered([[maybe_unused]] SchedulerStack& from) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &from.bottom_, &from.bytes_);
#endif
    }
    void leaves(SchedulerStack const& to, Order order) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake_, to.bottom_, to.bytes_);
#endif
        switch_to(to.tsan_, order);
    }
    void returned() {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
#endif
    }
    /// The fiber will not come back.
    void ends() { ended_ = true; }

private:
    struct Stack {
        void* bottom;
        TsanFiber tsan;
    };
    struct Kept {
        std::vector<Stack> stacks;
        ~Kept() {
            for (Stack const& stack : stacks) {
                munmap(stack.bottom, kBytes);
                end(stack.tsan);
            }
        }
    };
    static Kept& kept_stacks() {
        thread_local Kept kept;
        return kept;
    }

    void* bottom_ = nullptr;
    void* fake_ = nullptr;
    [[no_unique_address]] TsanFiber tsan_{};
    bool ended_ = false;
};

}  // namespace tensorhash::emulate
