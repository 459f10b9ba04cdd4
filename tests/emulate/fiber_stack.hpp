// Stacks of fibers, and what the address sanitizer must hear when one is left for another.
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

namespace tensorhash::emulate {

/// Where the scheduler was when a fiber took over.
class SchedulerStack {
public:
    template <class Stack>
    void leaves([[maybe_unused]] Stack const& to) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&fake_, to.bottom(), Stack::kBytes);
#endif
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
};

/// Pages that are mapped when a fiber first touches them, and kept for the thread's next fiber.
class FiberStack {
public:
    static constexpr std::size_t kBytes = std::size_t{64} << 10;

    FiberStack() {
        auto& kept = kept_stacks().stacks;
        if (!kept.empty()) {
            bottom_ = kept.back();
            kept.pop_back();
            return;
        }
        void* const p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            throw std::bad_alloc();
        }
        bottom_ = p;
    }
    FiberStack(FiberStack&& other) noexcept : bottom_(std::exchange(other.bottom_, nullptr)) {}
    ~FiberStack() {
        if (bottom_ != nullptr) {
            kept_stacks().stacks.push_back(bottom_);
        }
    }
    FiberStack& operator=(FiberStack&&) = delete;

    void const* bottom() const { return bottom_; }
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
    void leaves([[maybe_unused]] SchedulerStack const& to) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake_, to.bottom_, to.bytes_);
#endif
    }
    void returned() {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
#endif
    }
    /// The fiber will not come back.
    void ends() { ended_ = true; }

private:
    struct Kept {
        std::vector<void*> stacks;
        ~Kept() {
            for (void* const stack : stacks) {
                munmap(stack, kBytes);
            }
        }
    };
    static Kept& kept_stacks() {
        thread_local Kept kept;
        return kept;
    }

    void* bottom_ = nullptr;
    void* fake_ = nullptr;
    bool ended_ = false;
};

}  // namespace tensorhash::emulate
