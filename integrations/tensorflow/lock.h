// Readers together, writers alone, for the parts of a table that live outside the engine.
#ifndef TENSORHASH_TENSORFLOW_LOCK_H_
#define TENSORHASH_TENSORFLOW_LOCK_H_

#include <mutex>
#include <shared_mutex>

namespace tensorhash_tf {

/// A std::shared_mutex alone lets readers starve a writer on glibc. Here everybody passes a door first, and a writer
/// keeps it shut while it waits.
class Lock {
public:
    void lock() {
        std::lock_guard<std::mutex> const door(door_);
        state_.lock();
    }
    void unlock() { state_.unlock(); }
    void lock_shared() {
        std::lock_guard<std::mutex> const door(door_);
        state_.lock_shared();
    }
    void unlock_shared() { state_.unlock_shared(); }

private:
    std::mutex door_;
    std::shared_mutex state_;
};

using Reading = std::shared_lock<Lock>;
using Writing = std::unique_lock<Lock>;

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_LOCK_H_
