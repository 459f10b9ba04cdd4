// The thread pools, one per CPU device: started on first use, asleep when idle, rebuilt in a forked
// child. Over 400 lines, because the pool's states are shared by all of its functions.
#include "tensorhash/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "runtime/parallel.hpp"
#include "runtime/pause.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace runtime {
namespace {

constexpr int kMaxThreads = 1024;

// Sleeping and waking takes about 50 microseconds, as long as ten thousand lookups. The next part
// of a batch often comes sooner, so waiters spin before they sleep: about 100 microseconds on
// x86-64, or 20 if there are more threads than processors, because spinning slows the others down.
constexpr int kSpins = 2500;
constexpr int kCrowdedSpins = 500;

bool is_crowded() noexcept;

/// Spins for a while until `ready`, without a lock.
template <class Ready>
void spin_until(Ready const& ready) noexcept {
    int const spins = is_crowded() ? kCrowdedSpins : kSpins;
    for (int i = 0; i < spins && !ready(); ++i) {
        pause_processor();
    }
}

/// Tasks [next, count) of one call. Lives on the caller's stack. The pool's mutex guards `error`
/// and changes to `helpers`, which may be read without it.
struct Job {
    TaskRef task;
    std::size_t count;
    int max_helpers;  // workers besides the caller
    std::atomic<std::size_t> next{0};
    std::atomic<int> helpers{0};
    std::exception_ptr error{};
    Job* behind = nullptr;  // a list without allocation: run_tasks must not fail
};

/// What the calling thread may use.
struct Context {
    bool inside_task = false;
    std::size_t device = 0;
    int threads = 0;  // 0: the global setting
};
thread_local Context context;

/// Makes the calling thread work for a device, with `threads` of its threads.
class OnDevice {
public:
    OnDevice(int device, int threads) : before_(context) {
        context = {threads == 1, static_cast<std::size_t>(device), threads};
    }
    ~OnDevice() { context = before_; }
    OnDevice(OnDevice const&) = delete;
    OnDevice& operator=(OnDevice const&) = delete;

private:
    Context before_;
};

class Pool {
public:
    void run(Job& job) {
        offer(job, job.max_helpers);
        work_on(job);
        await(job);
    }

    /// Offers a job to the workers and makes sure that `wanted` of them exist. Every offered job
    /// must be awaited.
    void offer(Job& job, int wanted) {
        {
            std::unique_lock lock(mutex_);
            start_workers(static_cast<std::size_t>(wanted));
            job.behind = jobs_;
            jobs_ = &job;
            offers_.fetch_add(1, std::memory_order_relaxed);
        }
        wake_.notify_all();
    }

    void await(Job& job) {
        std::unique_lock lock(mutex_);
        forget(job);
        auto const done = [&] { return job.helpers.load(std::memory_order_relaxed) == 0; };
        if (!done()) {
            lock.unlock();
            spin_until(done);
            lock.lock();  // even if done: the last helper may still be about to notify
        }
        done_.wait(lock, done);
    }

    /// Runs tasks of the job on this thread until none is left.
    void work_on(Job& job) {
        bool const before = context.inside_task;
        context.inside_task = true;
        for (;;) {
            // Relaxed: the mutex orders a task's writes before await() returns.
            std::size_t const task = job.next.fetch_add(1, std::memory_order_relaxed);
            if (task >= job.count) {
                break;
            }
            try {
                job.task(task);
            } catch (...) {
                std::lock_guard lock(mutex_);
                if (!job.error) {
                    job.error = std::current_exception();
                }
                job.next.store(job.count, std::memory_order_relaxed);
            }
        }
        context.inside_task = before;
    }

    // Held across fork, so that the child sees a consistent state.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    void start_workers(std::size_t wanted) {
        for (; workers_ < wanted; ++workers_) {
            try {
                std::thread([this] { serve(); }).detach();
            } catch (std::exception const&) {
                return;  // the system has no more threads: fewer do the same work
            }
        }
    }

    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            Job* job = nullptr;
            wake_.wait(lock, [&] {
                job = open_job();
                return job != nullptr;
            });
            job->helpers.fetch_add(1, std::memory_order_relaxed);
            lock.unlock();
            work_on(*job);
            lock.lock();
            if (job->helpers.fetch_sub(1, std::memory_order_relaxed) == 1) {
                done_.notify_all();
            }
            std::uint64_t const seen = offers_.load(std::memory_order_relaxed);
            if (open_job() == nullptr) {
                lock.unlock();
                spin_until([&] { return offers_.load(std::memory_order_relaxed) != seen; });
                lock.lock();
            }
        }
    }

    void forget(Job& job) {
        Job** link = &jobs_;
        while (*link != &job) {
            link = &(*link)->behind;
        }
        *link = job.behind;
    }

    Job* open_job() {
        for (Job* job = jobs_; job != nullptr; job = job->behind) {
            if (job->helpers.load(std::memory_order_relaxed) < job->max_helpers &&
                job->next.load(std::memory_order_relaxed) < job->count) {
                return job;
            }
        }
        return nullptr;
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    Job* jobs_ = nullptr;
    std::atomic<std::uint64_t> offers_{0};  // jobs offered so far
    std::size_t workers_ = 0;
};

int threads_from_cgroup() {
    // cgroup v2 has one file with "quota period", v1 has two files. No limit reads "max" or -1.
    double quota = -1;
    double period = -1;
    if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
        v2 >> quota >> period;
    } else {
        std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
        std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
    }
    if (quota <= 0 || period <= 0) {
        return kMaxThreads;
    }
    return std::max(1, static_cast<int>(quota / period + 0.999));
}

/// How many processors this process may use.
int machine_threads() {
    static int const count = [] {
        cpu_set_t allowed;
        int affinity = static_cast<int>(std::thread::hardware_concurrency());
        if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
            affinity = CPU_COUNT(&allowed);
        }
        return std::max(1, std::min({affinity, threads_from_cgroup(), kMaxThreads}));
    }();
    return count;
}

int default_threads() {
    int const processors = machine_threads();
    if (char const* text = std::getenv("TENSORHASH_NUM_THREADS");
        text != nullptr && *text != '\0') {
        char* rest = nullptr;
        long const n = std::strtol(text, &rest, 10);
        if (*rest == '\0' && n >= 1 && n <= kMaxThreads) {
            return static_cast<int>(n);
        }
        std::fprintf(
            stderr,
            "tensorhash: TENSORHASH_NUM_THREADS: expected 1 to %d, got \"%s\"; it is ignored\n",
            kMaxThreads, text);
    }
    return processors;
}

std::atomic<int>& thread_setting() {
    static std::atomic<int> setting{default_threads()};
    return setting;
}

/// More threads than processors? Cannot throw: run_tasks has read the setting before, so the
/// statics exist.
bool is_crowded() noexcept {
    return thread_setting().load(std::memory_order_relaxed) > machine_threads();
}

// Never destroyed: workers may outlive static destruction, and a forked child abandons its copies.
alignas(Pool) unsigned char pool_memory[kMaxDevices][sizeof(Pool)];

Pool& pool_at(std::size_t device) {
    return *std::launder(reinterpret_cast<Pool*>(pool_memory[device]));
}

Pool& pool(std::size_t device) {
    static bool const made = [] {
        for (auto& memory : pool_memory) {
            new (memory) Pool;
        }
        pthread_atfork(
            [] {
                for (std::size_t i = 0; i < kMaxDevices; ++i) {
                    pool_at(i).lock();
                }
            },
            [] {
                for (std::size_t i = 0; i < kMaxDevices; ++i) {
                    pool_at(i).unlock();
                }
            },
            // The child has none of the threads: start over, without the old locks and lists.
            [] {
                context = {};
                for (auto& memory : pool_memory) {
                    new (memory) Pool;
                }
            });
        return true;
    }();
    static_cast<void>(made);
    return pool_at(device);
}

/// One task per device, each led by one thread that may use its device's others. The caller leads
/// the first task, and every other that no worker has taken by then. So a machine that has no more
/// threads is slower, but never stuck.
void lead_devices(std::span<int const> devices, int threads, TaskRef task) {
    auto const count = static_cast<int>(devices.size());
    auto const share = [&](std::size_t i) {
        return threads / count + (static_cast<int>(i) < threads % count ? 1 : 0);
    };
    auto const lead = [&](std::size_t i) {
        OnDevice const scope(devices[i], share(i));
        task(i);
    };
    std::array<std::optional<Job>, kMaxDevices> jobs;
    auto const pool_of = [&](std::size_t i) -> Pool& {
        return pool(static_cast<std::size_t>(devices[i]));
    };
    for (std::size_t i = 0; i < devices.size(); ++i) {
        jobs[i].emplace(lead, i + 1, 1, i);
        if (i > 0) {
            pool_of(i).offer(*jobs[i], share(i));
        }
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
        pool_of(i).work_on(*jobs[i]);
    }
    std::exception_ptr error;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (i > 0) {
            pool_of(i).await(*jobs[i]);
        }
        if (jobs[i]->error && !error) {
            error = jobs[i]->error;
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

}  // namespace

void run_tasks(std::size_t count, TaskRef task) {
    int const threads = num_threads();
    if (count <= 1 || context.inside_task || threads == 1) {
        for (std::size_t i = 0; i < count; ++i) {
            task(i);
        }
        return;
    }
    Job job{task, count, threads - 1};
    pool(context.device).run(job);
    if (job.error) {
        std::rethrow_exception(job.error);
    }
}

void run_on_devices(std::span<int const> devices, TaskRef task) {
    int const threads = num_threads();
    if (context.inside_task || threads == 1) {
        for (std::size_t i = 0; i < devices.size(); ++i) {
            task(i);
        }
    } else if (devices.size() == 1) {
        OnDevice const scope(devices[0], threads);
        task(0);
    } else if (static_cast<std::size_t>(threads) <= devices.size()) {
        run_tasks(devices.size(), [&](std::size_t i) {
            OnDevice const scope(devices[i], 1);
            task(i);
        });
    } else {
        lead_devices(devices, threads, task);
    }
}

Chunks cut(std::size_t rows, std::size_t grain) {
    auto const threads = static_cast<std::size_t>(num_threads());
    std::size_t const by_grain = rows / std::max<std::size_t>(grain, 1);
    std::size_t const wanted =
        threads == 1 ? 1 : std::clamp<std::size_t>(by_grain, 1, std::min(threads * 8, kMaxChunks));
    std::size_t size = (rows + wanted - 1) / std::max<std::size_t>(wanted, 1);
    size = std::max<std::size_t>((size + 63) / 64 * 64, 64);
    return {rows, size, rows == 0 ? 0 : (rows + size - 1) / size};
}

}  // namespace runtime

int num_threads() noexcept {
    int const here = runtime::context.threads;
    return here != 0 ? here : runtime::thread_setting().load(std::memory_order_relaxed);
}

void set_num_threads(int n) {
    if (n < 1 || n > runtime::kMaxThreads) {
        throw ValueError("n: expected 1 to " + std::to_string(runtime::kMaxThreads) +
                         " threads, got " + std::to_string(n));
    }
    runtime::thread_setting().store(n, std::memory_order_relaxed);
}

}  // namespace tensorhash
