// KnownState: a table's state as the host last read it, until a call may change it. So a listing
// waits once for its size, and size() twice in a row waits once.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "device/state.hpp"

namespace tensorhash::device {

/// Readers may call it at the same time.
class KnownState {
public:
    /// Asks the device unless the state is known.
    template <class Core>
    State state(Core const& core) {
        std::scoped_lock const guard(mutex_);
        if (!state_) {
            state_ = core.read_state();
        }
        return *state_;
    }
    /// Is it known that the table has at most this many entries?
    bool has_at_most(std::uint64_t entries) {
        std::scoped_lock const guard(mutex_);
        return state_ && state_->top - state_->free <= entries;
    }
    void forget() {
        std::scoped_lock const guard(mutex_);
        state_.reset();
    }

private:
    std::mutex mutex_;
    std::optional<State> state_;
};

}  // namespace tensorhash::device
