// What every contract test includes: GoogleTest, the table with its oracle, and the fixtures over
// key kinds and thread counts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "twin.hpp"

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

/// Rows that no pool can leave to one thread, and rows that it should.
inline constexpr std::size_t many_rows = 40000;
inline constexpr std::size_t few_rows = 700;

using KindAndThreads = std::tuple<KeyKind, int>;

/// A test over key kinds and thread counts; `key()` is the kind's element.
class OverKinds : public ::testing::TestWithParam<KindAndThreads> {
protected:
    OverKinds() : threads_(std::get<1>(GetParam())) {}
    Element const& key() const { return std::get<0>(GetParam()).element; }
    Twin twin(std::int64_t capacity = 0) const { return Twin(capacity, key(), columns()); }
    static std::vector<Element> columns() { return {{Dtype::Int64, {}}, {Dtype::Float32, {3}}}; }

private:
    Threads threads_;
};

inline std::string kind_name(::testing::TestParamInfo<KindAndThreads> const& info) {
    return std::get<0>(info.param).name + "_threads" + std::to_string(std::get<1>(info.param));
}

/// Instantiates a suite over all widths and types, or over one of each way through the engine.
#define TH_OVER_KINDS(suite, kinds)                                                           \
    INSTANTIATE_TEST_SUITE_P(Kinds, suite,                                                    \
                             ::testing::Combine(::testing::ValuesIn(kinds),                   \
                                                ::testing::ValuesIn(th_test::thread_counts)), \
                             th_test::kind_name)

/// The simplest table: int64 keys (1,), one int64 value.
inline HashMap int64_map(std::int64_t capacity = 0) {
    return HashMap(Capacity{capacity}, {Dtype::Int64, {1}}, {{Dtype::Int64, {1}}});
}

inline std::vector<std::int32_t> indices_of(Located const& located) {
    return to_vector<std::int32_t>(located.indices);
}
inline std::vector<std::uint8_t> mask_of(Located const& located) { return mask_of(located.mask); }

/// Equality of byte strings that does not print them.
inline ::testing::AssertionResult same_bytes(std::string const& got, std::string const& want) {
    if (got == want) return ::testing::AssertionSuccess();
    std::size_t at = 0;
    while (at < std::min(got.size(), want.size()) && got[at] == want[at]) ++at;
    return ::testing::AssertionFailure() << got.size() << " bytes, expected " << want.size()
                                         << "; the first difference is at byte " << at;
}
inline ::testing::AssertionResult same_bytes(Tensor const& got, Tensor const& want) {
    return same_bytes(bytes_of(got), bytes_of(want));
}
inline ::testing::AssertionResult same_bytes(Tensor const& got, std::string const& want) {
    return same_bytes(bytes_of(got), want);
}

/// The message of the error that `call` throws; fails the test if it throws nothing or another type.
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
