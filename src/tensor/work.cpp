// Which streams write and read a tensor's memory: the order in which the memory is used.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/thread_number.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {
namespace {

/// A stream of one thread: all threads use kPerThreadStream for default streams of their own.
struct ThreadStream {
    Stream stream;
    std::uint64_t thread = runtime::thread_number();

    /// Can this thread name it?
    bool is_reachable() const noexcept {
        return stream.handle != kPerThreadStream || thread == runtime::thread_number();
    }
    bool is(Stream other) const noexcept { return other == stream && is_reachable(); }
};

/// Work that uses the memory.
struct Use {
    ThreadStream by;
    Event done;
    bool is_awaited = false;  // by the home stream
};

}  // namespace

/// The last write of a memory and the reads since then, for all tensors over it. Keeps the memory
/// until its home stream, which frees it, waits for all of them.
class Tensor::Work {
public:
    Work(Stream home, std::shared_ptr<void> owner) : home_{home}, owner_(std::move(owner)) {}
    Work(Work const&) = delete;
    Work& operator=(Work const&) = delete;
    ~Work() {
        try {
            wait_at_home();
        } catch (std::exception const&) {  // NOLINT(bugprone-empty-catch)
            // The device failed, or belongs to the parent of a forked child: nothing is freed.
        }
    }

    void written_by(Stream stream) {
        std::scoped_lock const guard(mutex_);
        wait_for_reads(stream);
        write_ = use_by(stream);
        reads_.clear();
    }
    void read_by(Stream stream) {
        if (home_.is(stream)) {
            return;
        }
        std::scoped_lock const guard(mutex_);
        Use read = use_by(stream);
        std::erase_if(reads_, [&](Use const& one) { return one.by.is(stream); });  // it came before
        reads_.push_back(std::move(read));
    }
    void wait_on(Stream stream) {
        std::scoped_lock const guard(mutex_);
        wait_for(write_, stream);
    }
    void wait_to_write(Stream stream) {
        std::scoped_lock const guard(mutex_);
        wait_for(write_, stream);
        wait_for_reads(stream);
        if (!home_.is(stream)) {
            wait_for_home(stream);
        }
    }

private:
    Allocator& memory() const { return memory_of(home_.stream.device, "device"); }

    /// The work that `stream` has so far. The home stream waits for it if this thread can say so.
    Use use_by(Stream stream) const {
        Use use{{stream}, memory().record(stream), home_.is_reachable()};
        if (use.is_awaited && !home_.is(stream)) {
            memory().wait(home_.stream, use.done);
        }
        return use;
    }
    void wait_for(Use const& use, Stream stream) const {
        if (use.done != nullptr && !use.by.is(stream)) {
            memory().wait(stream, use.done);
        }
    }
    void wait_for_reads(Stream stream) const {
        for (Use const& read : reads_) {
            wait_for(read, stream);
        }
    }
    /// Reads of the home stream have no events. If it belongs to another thread, this waits for
    /// the legacy stream instead, which comes after the work of all threads.
    void wait_for_home(Stream stream) const {
        Stream const after =
            home_.is_reachable() ? home_.stream : Stream{home_.stream.device, kLegacyStream};
        memory().wait(stream, memory().record(after));
    }
    void wait_at_home() {
        reads_.push_back(std::move(write_));
        std::erase_if(reads_, [](Use const& use) { return use.is_awaited || use.done == nullptr; });
        if (reads_.empty()) {
            return;
        }
        bool const is_reachable = home_.is_reachable();
        Stream const waits = is_reachable ? home_.stream : current_stream(home_.stream.device);
        wait_for_reads(waits);
        if (!is_reachable) {
            memory().synchronize(waits);
        }
    }

    ThreadStream home_;
    std::shared_ptr<void> owner_;
    std::mutex mutex_;
    Use write_{home_, nullptr};
    std::vector<Use> reads_;  // one per stream
};

void Tensor::written_by(Stream stream) {
    if (!device_.is_cpu()) {
        std::shared_ptr<Work> work = work_;
        if (work == nullptr) {
            work = std::make_shared<Work>(stream, owner_);
        }
        work->written_by(stream);
        work_ = std::move(work);
    }
}

void Tensor::wait_on(Stream stream) const {
    if (work_ != nullptr) {
        work_->wait_on(stream);
    }
}

void Tensor::wait_to_write(Stream stream) const {
    if (work_ != nullptr) {
        work_->wait_to_write(stream);
    }
}

void Tensor::read_by(Stream stream) const {
    if (work_ != nullptr) {
        work_->read_by(stream);
    }
}

}  // namespace tensorhash
