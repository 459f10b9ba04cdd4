// Included by most contract tests: GoogleTest, the table with its oracle, and fixtures over key
// kinds and thread counts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "support/twin.hpp"

namespace th_test {

using tensorhash::HashSet;
using tensorhash::set_num_threads;

/// Sets the thread count for a scope.
class Threads {
public:
    explicit Threads(int n) : before_(tensorhash::num_threads()) { set_num_threads(n); }
    ~Threads() { set_num_threads(before_); }
    Threads(Threads const&) = delete;
    Threads& operator=(Threads const&) = delete;

private:
    int before_;
};

inline constexpr int thread_counts[] = {1, 2, 8};
/// Thread counts for a loop within one test; 1 and 8 under sanitizers.
std::vector<int> looped_thread_counts();

/// Enough rows to need several threads, and few enough for one.
inline constexpr std::size_t many_rows = 20000;
inline constexpr std::size_t few_rows = 700;

/// A key kind and a thread count; GoogleTest shows `name`.
struct KindAndThreads {
    KeyKind kind;
    int threads;
    std::string name;
};
std::vector<KindAndThreads> with_threads(std::vector<KeyKind> const& kinds);
std::string kind_name(::testing::TestParamInfo<KindAndThreads> const& info);
void PrintTo(KindAndThreads const& param, std::ostream* out);

/// A test over key kinds and thread counts; `key()` is the kind's element.
class OverKinds : public ::testing::TestWithParam<KindAndThreads> {
protected:
    OverKinds();
    ~OverKinds() override;
    static Element const& key() { return GetParam().kind.element; }
    static Twin twin(std::int64_t capacity = 0) { return Twin(capacity, key(), columns()); }
    static std::vector<Element> columns();

private:
    Threads threads_;
};

/// Instantiates a suite over `kinds`: all_kinds(), or sample_kinds() for one per engine path.
#define TH_OVER_KINDS(suite, kinds)                                                           \
    INSTANTIATE_TEST_SUITE_P(Kinds, suite, ::testing::ValuesIn(th_test::with_threads(kinds)), \
                             th_test::kind_name)

/// A test over thread counts; instances are named threads1, threads2, threads8.
class OverThreads : public ::testing::TestWithParam<int> {
protected:
    OverThreads();
    ~OverThreads() override;

private:
    Threads threads_;
};
std::string thread_name(::testing::TestParamInfo<int> const& info);

#define TH_OVER_THREADS(suite)                                                            \
    INSTANTIATE_TEST_SUITE_P(Threads, suite, ::testing::ValuesIn(th_test::thread_counts), \
                             th_test::thread_name)

/// The simplest table: int64 keys (1,), one int64 value.
HashMap int64_map(std::int64_t capacity = 0);

std::vector<std::int32_t> indices_of(Located const& located);
std::vector<std::uint8_t> mask_of(Located const& located);

/// Compares byte strings without printing them.
::testing::AssertionResult same_bytes(std::string const& got, std::string const& want);
::testing::AssertionResult same_bytes(Tensor const& got, Tensor const& want);
::testing::AssertionResult same_bytes(Tensor const& got, std::string const& want);

/// The message of the error that `call` throws; fails the test if it throws nothing or another
/// type.
template <class Error, class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (Error const& error) {
        return error.what();
    } catch (std::exception const& error) {
        ADD_FAILURE() << "another type of error: " << error.what();
        return {};
    }
    ADD_FAILURE() << "no error";
    return {};
}

}  // namespace th_test
