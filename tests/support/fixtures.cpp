#include "support/fixtures.hpp"

#include <algorithm>
#include <ostream>

namespace th_test {

std::vector<int> looped_thread_counts() {
    return runs_in_full() ? std::vector<int>{1, 2, 8} : std::vector<int>{1, 8};
}

std::vector<KindAndThreads> with_threads(std::vector<KeyKind> const& kinds) {
    std::vector<KindAndThreads> out;
    for (KeyKind const& kind : kinds)
        for (int threads : thread_counts)
            out.push_back({kind, threads, kind.name + "_threads" + std::to_string(threads)});
    return out;
}

std::string kind_name(::testing::TestParamInfo<KindAndThreads> const& info) {
    return info.param.name;
}

void PrintTo(KindAndThreads const& param, std::ostream* out) { *out << param.name; }

OverKinds::OverKinds() : threads_(GetParam().threads) {}
OverKinds::~OverKinds() = default;

std::vector<Element> OverKinds::columns() { return {{Dtype::Int64, {}}, {Dtype::Float32, {3}}}; }

OverThreads::OverThreads() : threads_(GetParam()) {}
OverThreads::~OverThreads() = default;

std::string thread_name(::testing::TestParamInfo<int> const& info) {
    return "threads" + std::to_string(info.param);
}

HashMap int64_map(std::int64_t capacity) {
    return make_map(Capacity{capacity}, {Dtype::Int64, {1}}, {{Dtype::Int64, {1}}});
}

std::vector<std::int32_t> indices_of(Located const& located) {
    return to_vector<std::int32_t>(located.indices);
}
std::vector<std::uint8_t> mask_of(Located const& located) { return mask_of(located.mask); }

::testing::AssertionResult same_bytes(std::string const& got, std::string const& want) {
    if (got == want) return ::testing::AssertionSuccess();
    std::size_t at = 0;
    while (at < std::min(got.size(), want.size()) && got[at] == want[at]) ++at;
    return ::testing::AssertionFailure() << got.size() << " bytes, expected " << want.size()
                                         << "; the first difference is at byte " << at;
}
::testing::AssertionResult same_bytes(Tensor const& got, Tensor const& want) {
    return same_bytes(bytes_of(got), bytes_of(want));
}
::testing::AssertionResult same_bytes(Tensor const& got, std::string const& want) {
    return same_bytes(bytes_of(got), want);
}

}  // namespace th_test
