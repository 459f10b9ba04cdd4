// The thread pool: every task runs once, exceptions reach the caller, calls nest and overlap, the
// thread count may change at any time, and a forked child gets a new pool.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/parallel.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::runtime::Chunks;
using tensorhash::runtime::cut;
using tensorhash::runtime::for_ranges;
using tensorhash::runtime::run_tasks;

class Pool : public OverThreads {};
INSTANTIATE_TEST_SUITE_P(Threads, Pool, ::testing::Values(1, 2, 8, 64));

TEST_P(Pool, every_task_runs_exactly_once) {
    for (std::size_t count : {0u, 1u, 2u, 7u, 1000u}) {
        std::vector<std::atomic<int>> runs(count);
        run_tasks(count, [&](std::size_t task) { ++runs[task]; });
        for (std::atomic<int>& n : runs) EXPECT_EQ(n.load(), 1);
    }
}

TEST_P(Pool, the_caller_sees_what_tasks_wrote) {
    for (int round = 0; round < 200; ++round) {
        std::vector<int> plain(16, 0);
        run_tasks(plain.size(), [&](std::size_t task) { plain[task] = round; });
        EXPECT_EQ(std::accumulate(plain.begin(), plain.end(), 0), 16 * round);
    }
}

TEST_P(Pool, an_exception_reaches_the_caller_and_the_pool_keeps_working) {
    for (std::size_t bad : {0u, 5u, 99u}) {
        auto call = [&] {
            run_tasks(100, [&](std::size_t task) {
                if (task == bad) throw std::logic_error("task " + std::to_string(task));
            });
        };
        EXPECT_THROW(call(), std::logic_error);
        std::atomic<int> runs{0};
        run_tasks(50, [&](std::size_t) { ++runs; });
        EXPECT_EQ(runs.load(), 50);
    }
}

TEST_P(Pool, if_every_task_throws_one_exception_reaches_the_caller) {
    EXPECT_THROW(run_tasks(64, [](std::size_t) { throw std::runtime_error("no"); }),
                 std::runtime_error);
}

TEST_P(Pool, calls_nest) {
    std::atomic<int> runs{0};
    run_tasks(8, [&](std::size_t) {
        run_tasks(8, [&](std::size_t) { run_tasks(4, [&](std::size_t) { ++runs; }); });
    });
    EXPECT_EQ(runs.load(), 256);
}

TEST_P(Pool, a_nested_exception_comes_through) {
    auto call = [] {
        run_tasks(4, [](std::size_t outer) {
            run_tasks(4, [outer](std::size_t inner) {
                if (outer == 2 && inner == 3) throw std::logic_error("deep");
            });
        });
    };
    EXPECT_THROW(call(), std::logic_error);
}

TEST_P(Pool, callers_on_several_threads_do_not_mix_their_tasks) {
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int c = 0; c < 6; ++c)
        callers.emplace_back([&, c] {
            for (int round = 0; round < 100; ++round) {
                std::vector<std::atomic<int>> runs(20);
                try {
                    run_tasks(20, [&](std::size_t task) {
                        ++runs[task];
                        if (c == 5 && task == 7) throw std::logic_error("mine");
                    });
                    if (c == 5) ++wrong;
                } catch (std::logic_error const&) {
                    if (c != 5) ++wrong;
                }
                if (c != 5)
                    for (std::atomic<int>& n : runs) wrong += n.load() != 1;
            }
        });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(PoolSettings, the_number_of_threads_may_change_while_calls_run) {
    Threads restore(4);
    std::atomic<bool> stop{false};
    std::thread changer([&] {
        for (int n = 1; !stop.load(); n = n % 9 + 1) tensorhash::set_num_threads(n);
    });
    for (int round = 0; round < 2000; ++round) {
        std::atomic<int> runs{0};
        run_tasks(32, [&](std::size_t) { ++runs; });
        ASSERT_EQ(runs.load(), 32);
    }
    stop = true;
    changer.join();
}

TEST(PoolSettings, no_more_threads_work_than_configured) {
    for (int n : {1, 2, 3}) {
        Threads threads(n);
        std::atomic<int> at_work{0}, most{0};
        auto const round = [&] {
            run_tasks(64, [&](std::size_t) {
                int now = ++at_work;
                for (int seen = most.load();
                     now > seen && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                --at_work;
            });
        };
        // On a busy machine a worker may start late: repeat until two were seen together.
        for (int i = 0; i < 200 && (i == 0 || most.load() < std::min(n, 2)); ++i) round();
        EXPECT_LE(most.load(), n);
        EXPECT_GE(most.load(), std::min(n, 2)) << "the pool really splits the work";
    }
}

/// Processor time of this process, in seconds.
double busy_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(PoolSettings, idle_threads_sleep) {
    Threads threads(8);
    run_tasks(64, [](std::size_t) {});
    double before = busy_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_LT(busy_seconds() - before, 0.15);
}

TEST(PoolFork, a_child_has_its_own_pool) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer stops at new threads in a forked child";
#endif
    Threads threads(4);
    run_tasks(64, [](std::size_t) {});
    for (int i = 0; i < 10; ++i) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            std::mutex mutex;
            std::set<std::thread::id> ids;
            // On a busy machine a worker may start late: repeat until one came, or the alarm rings.
            while (ids.size() < 2) {
                run_tasks(64, [&](std::size_t) {
                    std::this_thread::sleep_for(std::chrono::microseconds(300));
                    std::lock_guard lock(mutex);
                    ids.insert(std::this_thread::get_id());
                });
            }
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        run_tasks(64, [](std::size_t) {});
    }
}

TEST(PoolCuts, chunks_cover_all_rows_once_in_order_on_multiples_of_64) {
    for (int n : {1, 2, 8, 64}) {
        Threads threads(n);
        for (std::size_t rows : {0u, 1u, 63u, 64u, 65u, 4095u, 4096u, 8192u, 100000u, 1000003u})
            for (std::size_t grain : {1u, 64u, 4096u}) {
                Chunks chunks = cut(rows, grain);
                std::size_t at = 0;
                for (std::size_t c = 0; c < chunks.count; ++c) {
                    ASSERT_EQ(chunks.begin(c), at);
                    ASSERT_EQ(at % 64, 0u);
                    ASSERT_GT(chunks.end(c), at);
                    at = chunks.end(c);
                }
                ASSERT_EQ(at, rows);
            }
    }
}

TEST(PoolCuts, for_ranges_visits_each_row_once) {
    for (int n : {1, 2, 8}) {
        Threads threads(n);
        std::vector<int> seen(100003, 0);
        for_ranges(seen.size(), 64, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) ++seen[i];
        });
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 100003);
        bool called = false;
        for_ranges(0, 64, [&](std::size_t, std::size_t) { called = true; });
        EXPECT_FALSE(called);
    }
}

}  // namespace
}  // namespace th_test
