// Parallel readers, exclusive writers. A waiting writer goes before readers that arrive later.
#pragma once

#include <condition_variable>
#include <mutex>

namespace tensorhash::runtime {

/// std::shared_mutex lets a steady stream of readers starve a writer on glibc; this one does not.
class ReadWriteLock {
public:
    void lock() {
        std::unique_lock guard(mutex_);
        ++waiting_writers_;
        writers_turn_.wait(guard, [&] { return !writing_ && readers_ == 0; });
        --waiting_writers_;
        writing_ = true;
    }
    void unlock() {
        std::lock_guard guard(mutex_);
        writing_ = false;
        // Readers that already wait go first, so that writers do not starve them either.
        turns_for_readers_ = waiting_readers_;
        readers_turn_.notify_all();
        writers_turn_.notify_one();
    }
    void lock_shared() {
        std::unique_lock guard(mutex_);
        ++waiting_readers_;
        readers_turn_.wait(
            guard, [&] { return !writing_ && (waiting_writers_ == 0 || turns_for_readers_ > 0); });
        --waiting_readers_;
        if (turns_for_readers_ > 0) {
            --turns_for_readers_;
        }
        ++readers_;
    }
    void unlock_shared() {
        std::lock_guard guard(mutex_);
        if (--readers_ == 0) {
            writers_turn_.notify_one();
            if (waiting_writers_ == 0) {
                readers_turn_.notify_all();
            }
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable writers_turn_;
    std::condition_variable readers_turn_;
    int readers_ = 0;
    int waiting_readers_ = 0;
    int waiting_writers_ = 0;
    int turns_for_readers_ = 0;
    bool writing_ = false;
};

}  // namespace tensorhash::runtime
