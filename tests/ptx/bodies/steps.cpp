// The steps, compiled to PTX by clang and interpreted: a batch with repeated keys against a loop
// over its rows, without races.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ptx/bodies/step_bodies.hpp"
#include "ptx/interpreter.hpp"

namespace th_ptx {
namespace {

/// A few seeds, or 50 in `make test-release`.
std::uint64_t seeds() { return std::getenv("TENSORHASH_TEST_IN_FULL") != nullptr ? 50 : 5; }

template <class T>
class DeviceArray {
public:
    DeviceArray(Interpreter& device, std::size_t size)
        : device_(device), size_(size),
          data_(static_cast<T*>(device.memory().allocate(size * sizeof(T)))) {}
    DeviceArray(Interpreter& device, std::vector<T> const& values)
        : DeviceArray(device, values.size()) {
        device.memory().write(data_, values.data(), values.size() * sizeof(T));
    }
    T* data() const { return data_; }
    std::vector<T> read() const {
        std::vector<T> values(size_);
        device_.memory().read(values.data(), data_, size_ * sizeof(T));
        return values;
    }

private:
    Interpreter& device_;
    std::size_t size_;
    T* data_;
};

/// `rows` keys, drawn from `distinct` ones.
std::vector<unsigned char> draw_keys(std::mt19937_64& random, std::size_t rows,
                                     std::uint64_t distinct, std::size_t width) {
    std::vector<unsigned char> keys;
    for (std::size_t row = 0; row < rows; ++row) {
        std::mt19937_64 key(random() % distinct);
        for (std::size_t i = 0; i < width; ++i) {
            keys.push_back(static_cast<unsigned char>(key()));
        }
    }
    return keys;
}

/// The first row of each key of `claimed`, for the rows of `asked`.
std::vector<std::uint32_t> first_rows(std::vector<unsigned char> const& claimed,
                                      std::vector<unsigned char> const& asked, std::size_t width) {
    auto const key = [&](auto const& keys, std::size_t at) {
        return std::string(keys.begin() + static_cast<std::ptrdiff_t>(at),
                           keys.begin() + static_cast<std::ptrdiff_t>(at + width));
    };
    std::map<std::string, std::uint32_t> first;
    for (std::size_t at = 0; at < claimed.size(); at += width) {
        first.try_emplace(key(claimed, at), static_cast<std::uint32_t>(at / width));
    }
    std::vector<std::uint32_t> out;
    for (std::size_t at = 0; at < asked.size(); at += width) {
        auto const found = first.find(key(asked, at));
        out.push_back(found == first.end() ? step::kNotFound : found->second);
    }
    return out;
}

/// Claims the rows of one batch in an index without much room to spare, then looks up another.
template <class Reader>
void claim_and_find(std::size_t width, std::uint64_t seed) {
    constexpr std::uint32_t kRows = 150;
    constexpr std::uint64_t kBuckets = 32;
    std::mt19937_64 random(seed);
    Interpreter device(program_of_file(TH_STEPS_PTX), {.seed = seed});
    std::uint64_t const distinct = seed % 2 == 0 ? 20 : 130;  // many repeats, or full buckets
    auto const keys = draw_keys(random, kRows, distinct, width);
    auto const asked = draw_keys(random, kRows, distinct + 30, width);
    DeviceArray<unsigned char> const device_keys(device, keys);
    DeviceArray<unsigned char> const device_asked(device, asked);
    DeviceArray<std::uint64_t> const buckets(device, std::vector<std::uint64_t>(kBuckets * 8));
    DeviceArray<std::uint32_t> const positions(device, kRows);
    DeviceArray<std::uint32_t> const found(device, kRows);
    DeviceArray<unsigned char> const mask(device, kRows);
    DeviceArray<std::uint32_t> const broken(device, std::vector<std::uint32_t>(1));

    IndexView const view{buckets.data(), kBuckets, device_keys.data(),
                         static_cast<std::uint32_t>(width), 0};
    BatchView batch{device_keys.data(), 0, positions.data(), found.data(), mask.data()};
    device.launch(kRows, ClaimRows<Reader>{view, batch, broken.data(), kRows});
    device.launch(kRows, JoinRows<Reader>{view, batch, kRows});
    batch.keys = device_asked.data();
    batch.base = kRows;
    device.launch(kRows, FindRows<Reader>{view, batch, broken.data(), kRows});

    EXPECT_EQ(found.read(), first_rows(keys, asked, width)) << "seed " << seed;
    EXPECT_EQ(broken.read().front(), 0u);
    EXPECT_EQ(device.races(), std::set<std::string>{}) << "seed " << seed;
}

template <class Reader>
void claim_and_find_with_all_seeds(std::size_t width) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) claim_and_find<Reader>(width, seed);
}

TEST(PtxSteps, Narrow8) { claim_and_find_with_all_seeds<step::Narrow8>(8); }
TEST(PtxSteps, Narrow4) { claim_and_find_with_all_seeds<step::Narrow4>(4); }
TEST(PtxSteps, NarrowAny) { claim_and_find_with_all_seeds<step::NarrowAny>(6); }
TEST(PtxSteps, Wide12) { claim_and_find_with_all_seeds<step::Wide12>(12); }
TEST(PtxSteps, Wide16) { claim_and_find_with_all_seeds<step::Wide16>(16); }
TEST(PtxSteps, WideAny) { claim_and_find_with_all_seeds<step::WideAny>(20); }

/// A full index has no empty slot: the bounded probe must end and say so.
TEST(PtxSteps, AFullIndexIsReportedNotWaitedFor) {
    constexpr std::uint32_t kRows = 64;
    std::mt19937_64 random(1);
    Interpreter device(program_of_file(TH_STEPS_PTX), {.budget = 1'000'000});
    DeviceArray<unsigned char> const keys(device, draw_keys(random, kRows, ~0ull, 8));
    DeviceArray<std::uint64_t> const buckets(device, std::vector<std::uint64_t>(2 * 8));
    DeviceArray<std::uint32_t> const positions(device, kRows);
    DeviceArray<std::uint32_t> const found(device, kRows);
    DeviceArray<unsigned char> const mask(device, kRows);
    DeviceArray<std::uint32_t> const broken(device, std::vector<std::uint32_t>(1));
    IndexView const view{buckets.data(), 2, keys.data(), 8, 0};
    BatchView const batch{keys.data(), 0, positions.data(), found.data(), mask.data()};
    device.launch(kRows, ClaimRows<step::Narrow8>{view, batch, broken.data(), kRows});
    EXPECT_EQ(broken.read().front(), 1u);
}

}  // namespace
}  // namespace th_ptx
