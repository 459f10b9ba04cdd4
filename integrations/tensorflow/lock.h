// A read-write lock for the parts of a table outside the engine: readers together, writers alone.
#ifndef TENSORHASH_TENSORFLOW_LOCK_H_
#define TENSORHASH_TENSORFLOW_LOCK_H_

#include <mutex>
#include <shared_mutex>

namespace tensorhash_tf {

/// On glibc, readers of a std::shared_mutex can starve a writer. Here every thread locks `door_`
/// first, and a waiting writer holds it, so that new readers wait behind the writer.
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
