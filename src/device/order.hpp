// Order: calls of one table on several streams. A writer waits for the last writer and for the
// readers since; a reader waits for the last writer. Calls on one stream are in order anyway.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/thread_number.hpp"
#include "tensorhash/stream.hpp"

namespace tensorhash::device {

template <class Queue>
class Order {
public:
    /// One call of the table: waits when it begins, records an event when it ends.
    class Turn {
    public:
        Turn(Turn const&) = delete;
        Turn& operator=(Turn const&) = delete;
        ~Turn() { order_->end(*queue_, writes_); }

    private:
        friend class Order;
        Turn(Order& order, Queue& queue, bool writes)
            : order_(&order), queue_(&queue), writes_(writes) {
            order.begin(queue, writes);
        }
        Order* order_;
        Queue* queue_;
        bool writes_;
    };

    [[nodiscard]] Turn read(Queue& queue) { return {*this, queue, false}; }
    [[nodiscard]] Turn write(Queue& queue) { return {*this, queue, true}; }

private:
    struct Call {
        std::uintptr_t stream;
        typename Queue::Event event;
    };

    void begin(Queue& queue, bool writes) {
        std::scoped_lock const guard(mutex_);
        auto const wait_for = [&](std::vector<Call> const& calls) {
            for (Call const& call : calls) {
                if (call.stream != queue.stream()) {
                    queue.wait(call.event);
                }
            }
        };
        wait_for(last_write_);
        if (writes) {
            wait_for(reads_);
        }
    }
    void end(Queue& queue, bool writes) {
        std::scoped_lock const guard(mutex_);
        Call call{queue.stream(), queue.record()};
        if (writes) {
            reads_.clear();
            last_write_.clear();
            last_write_.push_back(std::move(call));
            return;
        }
        for (Call& earlier : reads_) {
            if (earlier.stream == call.stream) {
                earlier = std::move(call);
                return;
            }
        }
        reads_.push_back(std::move(call));
    }

    std::mutex mutex_;
    std::vector<Call> last_write_;  // at most one
    std::vector<Call> reads_;       // since then, one per stream
};

/// Holds the memory of a view. Its last owner frees it on the stream that made the view, after the
/// calls of the table. If that is another thread's default stream, the legacy stream stands for it.
template <class Queue>
struct Viewed {
    std::shared_ptr<void> memory;
    std::shared_ptr<Order<Queue>> order;
    Queue* queue;
    Stream stream;
    std::uint64_t thread = runtime::thread_number();

    ~Viewed() {
        bool const is_foreign =
            stream.handle == kPerThreadStream && thread != runtime::thread_number();
        StreamScope const scope(is_foreign ? Stream{stream.device, kLegacyStream} : stream);
        auto const turn = order->write(*queue);
        memory.reset();
    }
};

/// The owner of a view that a call on the thread's stream makes.
template <class Queue>
std::shared_ptr<void> owner_of_view(Queue& queue, Device device,
                                    std::shared_ptr<Order<Queue>> const& order,
                                    std::shared_ptr<void> memory) {
    return std::shared_ptr<Viewed<Queue>>(
        new Viewed<Queue>{std::move(memory), order, &queue, current_stream(device)});
}

}  // namespace tensorhash::device
