// The thread pool: started when first needed, asleep when idle, made anew in a forked child.
#include "tensorhash/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace runtime {
namespace {

constexpr int kMaxThreads = 1024;

/// One call of run_tasks. Lives on its caller's stack; the pool's mutex guards `helpers` and `error`.
struct Job {
    TaskRef task;
    std::size_t count;
    std::atomic<std::size_t> next{0};
    int helpers = 0;
    std::exception_ptr error{};
    Job* behind = nullptr;  // the list needs no memory: run_tasks must not fail
};

thread_local bool inside_task = false;

class Pool {
public:
    void run(Job& job) {
        {
            std::unique_lock lock(mutex_);
            start_workers(static_cast<std::size_t>(num_threads() - 1));
            job.behind = jobs_;
            jobs_ = &job;
        }
        wake_.notify_all();
        work_on(job);
        std::unique_lock lock(mutex_);
        forget(job);
        done_.wait(lock, [&] { return job.helpers == 0; });
    }

    // Held over fork, so that the child sees the state whole.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    void start_workers(std::size_t wanted) {
        for (; workers_ < wanted; ++workers_) {
            try {
                std::thread([this, id = workers_] { serve(id); }).detach();
            } catch (std::exception const&) {
                return;  // the machine has no more threads to give: fewer do the same work
            }
        }
    }

    void serve(std::size_t id) {
        std::unique_lock lock(mutex_);
        for (;;) {
            Job* job = nullptr;
            wake_.wait(lock, [&] {
                job = id + 1 < static_cast<std::size_t>(num_threads()) ? open_job() : nullptr;
                return job != nullptr;
            });
            ++job->helpers;
            lock.unlock();
            work_on(*job);
            lock.lock();
            if (--job->helpers == 0) {
                done_.notify_all();
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
            if (job->next.load(std::memory_order_relaxed) < job->count) {
                return job;
            }
        }
        return nullptr;
    }

    void work_on(Job& job) {
        inside_task = true;
        for (;;) {
            // Relaxed: the mutex orders a task's writes before run() returns.
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
        inside_task = false;
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    Job* jobs_ = nullptr;
    std::size_t workers_ = 0;
};

int threads_from_cgroup() {
    // cgroup v2 "quota period", v1 two files; no limit reads as "max" or -1.
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

int default_threads() {
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
    cpu_set_t allowed;
    int affinity = static_cast<int>(std::thread::hardware_concurrency());
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
        affinity = CPU_COUNT(&allowed);
    }
    return std::max(1, std::min({affinity, threads_from_cgroup(), kMaxThreads}));
}

std::atomic<int>& thread_setting() {
    static std::atomic<int> setting{default_threads()};
    return setting;
}

// Never destroyed: workers may outlive static destruction, and a forked child abandons its copy.
alignas(Pool) unsigned char pool_memory[sizeof(Pool)];

Pool& pool() {
    static Pool* const the_pool = [] {
        Pool* made = new (pool_memory) Pool;
        pthread_atfork(
            [] { reinterpret_cast<Pool*>(pool_memory)->lock(); },
            [] { reinterpret_cast<Pool*>(pool_memory)->unlock(); },
            // The child has none of the threads: begin again, old locks and lists forgotten.
            [] {
                inside_task = false;
                new (pool_memory) Pool;
            });
        return made;
    }();
    return *the_pool;
}

}  // namespace

void run_tasks(std::size_t count, TaskRef task) {
    if (count <= 1 || inside_task || num_threads() == 1) {
        for (std::size_t i = 0; i < count; ++i) {
            task(i);
        }
        return;
    }
    Job job{task, count};
    pool().run(job);
    if (job.error) {
        std::rethrow_exception(job.error);
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

int num_threads() noexcept { return runtime::thread_setting().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
    if (n < 1 || n > runtime::kMaxThreads) {
        throw ValueError("n: expected 1 to " + std::to_string(runtime::kMaxThreads) +
                         " threads, got " + std::to_string(n));
    }
    runtime::thread_setting().store(n, std::memory_order_relaxed);
}

}  // namespace tensorhash
