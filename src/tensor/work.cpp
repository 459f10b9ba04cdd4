// Which stream writes a tensor, and which streams read it: the order in which its memory is used.
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/thread_number.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// The stream that writes a tensor, and an event after its work. It keeps the memory until the
/// writer's stream, which frees it, waits for all reads.
class Tensor::Work {
public:
    Work(Stream stream, Event written, std::shared_ptr<void> owner)
        : stream_(stream), written_(std::move(written)), owner_(std::move(owner)) {}
    Work(Work const&) = delete;
    Work& operator=(Work const&) = delete;
    ~Work() {
        try {
            wait_for_reads();
        } catch (std::exception const&) {  // NOLINT(bugprone-empty-catch)
            // The device failed, or belongs to the parent of a forked child: nothing is freed.
        }
    }

    /// Is this the writer's stream? All threads use kPerThreadStream for streams of their own.
    bool is_on(Stream stream) const noexcept { return stream == stream_ && is_reachable(); }
    Event const& written() const noexcept { return written_; }

    void read_by(Stream stream) {
        if (is_on(stream)) {
            return;
        }
        Allocator& memory = memory_of(stream_.device, "device");
        Event read = memory.record(stream);
        if (is_reachable()) {
            memory.wait(stream_, read);
            return;
        }
        std::scoped_lock const guard(mutex_);
        std::erase_if(reads_, [&](Read const& one) {  // the new event comes after that one
            return one.stream == stream && one.thread == runtime::thread_number();
        });
        reads_.push_back({stream, runtime::thread_number(), std::move(read)});
    }

private:
    struct Read {
        Stream stream;
        std::uint64_t thread;
        Event done;
    };

    /// Can this thread name the writer's stream?
    bool is_reachable() const noexcept {
        return stream_.handle != kPerThreadStream || thread_ == runtime::thread_number();
    }
    void wait_for_reads() {
        if (reads_.empty()) {
            return;
        }
        Allocator& memory = memory_of(stream_.device, "device");
        bool const reachable = is_reachable();
        Stream const waits = reachable ? stream_ : current_stream(stream_.device);
        for (Read const& read : reads_) {
            memory.wait(waits, read.done);
        }
        if (!reachable) {
            memory.synchronize(waits);
        }
    }

    Stream stream_;
    std::uint64_t thread_ = runtime::thread_number();
    Event written_;
    std::shared_ptr<void> owner_;
    std::mutex mutex_;
    std::vector<Read> reads_;  // by threads that cannot name the writer's stream, one per stream
};

void Tensor::written_by(Stream stream) {
    if (!device_.is_cpu()) {
        Event event = memory_of(device_, "device").record(stream);
        work_ = std::make_shared<Work>(stream, std::move(event), owner_);
    }
}

void Tensor::wait_on(Stream stream) const {
    if (work_ != nullptr && !work_->is_on(stream)) {
        memory_of(device_, "device").wait(stream, work_->written());
    }
}

void Tensor::read_by(Stream stream) const {
    if (work_ != nullptr) {
        work_->read_by(stream);
    }
}

}  // namespace tensorhash
