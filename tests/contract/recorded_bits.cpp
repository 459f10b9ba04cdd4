// Distances, reductions and optimizer steps must have the bits recorded on x86-64 in
// recorded_bits.inc, with any compiler, instruction set and processor.
#include <array>
#include <cstdint>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "support/fixtures.hpp"
#include "tensor/half.hpp"
#include "tensor/powers.hpp"
#include "tensorhash/coords/neighbours.hpp"
#include "tensorhash/coords/voxels.hpp"
#include "tensorhash/optimizer.hpp"

namespace th_test {
namespace {

namespace coords = tensorhash::coords;

/// A digest of all bytes of some tensors, and a few words to print when the digest differs.
struct Bits {
    std::uint64_t digest = 0xcbf29ce484222325u;
    std::array<std::uint64_t, 3> words{};

    Bits& add(Tensor const& tensor) {
        auto const* const bytes = static_cast<unsigned char const*>(tensor.data());
        for (std::size_t i = 0; i < tensor.bytes(); ++i)
            digest = (digest ^ bytes[i]) * 0x100000001b3u;
        for (std::size_t i = 0; i < words.size(); ++i)
            std::memcpy(&words[i], bytes + tensor.bytes() / 8 / 3 * i * 8, 8);
        return *this;
    }
    friend bool operator==(Bits const&, Bits const&) = default;
};

struct Recorded {
    char const* name;
    Bits bits;
};

Recorded const recorded[] = {
#include "recorded_bits.inc"
};

void expect_recorded(std::string const& name, Bits const& got) {
    Bits want;
    for (Recorded const& one : recorded)
        if (name == one.name) want = one.bits;
    std::ostringstream line;
    line << std::hex << "    {\"" << name << "\", {0x" << got.digest << "u, {";
    for (std::size_t i = 0; i < got.words.size(); ++i)
        line << (i == 0 ? "0x" : "u, 0x") << got.words[i];
    EXPECT_EQ(got, want) << "got:\n" << line.str() << "u}}},";
}

std::uint64_t random_word(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t x = (seed << 32) + i * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/// Numbers between -8 and 8 that float represents exactly, made from integers without float
/// arithmetic.
Tensor floats(Dtype dtype, Shape const& shape, std::uint64_t seed) {
    Tensor out = Tensor::empty(shape, dtype);
    for (std::int64_t i = 0; i < out.size(); ++i) {
        auto const whole =
            static_cast<std::int32_t>(random_word(seed, static_cast<std::uint64_t>(i)) >> 40);
        float const x = static_cast<float>(whole - (1 << 23)) * 0x1p-20f;
        auto const n = static_cast<std::size_t>(i);
        switch (dtype) {
            case Dtype::Float64:
                out.as_mutable<double>()[n] = x;
                break;
            case Dtype::Float32:
                out.as_mutable<float>()[n] = x;
                break;
            default: {
                auto const half = dtype == Dtype::Float16 ? tensorhash::float_to_half(x)
                                                          : tensorhash::float_to_bfloat16(x);
                std::memcpy(static_cast<unsigned char*>(out.data()) + 2 * n, &half, 2);
            }
        }
    }
    return out;
}

Tensor some_keys(std::size_t rows, std::uint64_t distinct, std::uint64_t seed) {
    std::vector<std::int64_t> keys(rows);
    for (std::size_t i = 0; i < rows; ++i)
        keys[i] = static_cast<std::int64_t>(random_word(seed, i) % distinct);
    return Tensor::from(keys);
}

Dtype const float_dtypes[] = {Dtype::Float16, Dtype::BFloat16, Dtype::Float32, Dtype::Float64};

class RecordedBits : public ::testing::TestWithParam<int> {
protected:
    RecordedBits() : threads_(GetParam()) {}

private:
    Threads threads_;
};
INSTANTIATE_TEST_SUITE_P(Threads, RecordedBits, ::testing::Values(1, 8),
                         [](auto const& test) { return "threads" + std::to_string(test.param); });

TEST_P(RecordedBits, distances) {
    for (Dtype dtype : {Dtype::Float32, Dtype::Float64}) {
        coords::Cloud const points{floats(dtype, {3000, 3}, 1)},
            queries{floats(dtype, {300, 3}, 2)};
        auto const near = coords::radius_search(points, queries, 1.25);
        expect_recorded("radius " + std::string(name(dtype)),
                        Bits{}.add(near.offsets).add(near.indices).add(near.distances));
        auto const nearest = coords::knn_search(points, queries, 7);
        expect_recorded("nearest " + std::string(name(dtype)),
                        Bits{}.add(nearest.indices).add(nearest.distances));
    }
}

TEST_P(RecordedBits, reductions) {
    using tensorhash::Reduce;
    Tensor const keys = some_keys(20000, 700, 3);
    for (Dtype dtype : float_dtypes)
        for (auto const& [word, reduce] :
             {std::pair{"sum ", Reduce::Sum}, {"min ", Reduce::Min}, {"max ", Reduce::Max}}) {
            HashMap map = make_map(Capacity{0}, {Dtype::Int64, {}}, {{dtype, {5}}});
            map.accumulate(keys, {floats(dtype, {20000, 5}, 4)}, {reduce});
            expect_recorded(word + std::string(name(dtype)), Bits{}.add(map.items().values[0]));
        }
}

TEST_P(RecordedBits, voxels) {
    for (Dtype dtype : {Dtype::Float32, Dtype::Float64}) {
        Tensor const points = floats(dtype, {20000, 3}, 5);
        Tensor const cells =
            coords::voxel_coords(points, {0.7, 1.1, 1.3}, {0.1, 0.2, 0.3}, {}, Dtype::Int32);
        auto const unique = tensorhash::unique(cells);
        Tensor const mean = coords::reduce_voxels(points, unique.inverse, unique.rows.shape()[0],
                                                  coords::VoxelReduce::Mean);
        expect_recorded("voxels " + std::string(name(dtype)), Bits{}.add(unique.rows).add(mean));
    }
}

TEST_P(RecordedBits, optimizer_steps) {
    using namespace tensorhash;
    std::pair<char const*, Optimizer> const optimizers[] = {
        {"sgd ", Sgd{.lr = 0.1, .weight_decay = 0.01}},
        {"momentum ", Sgd{.lr = 0.1, .momentum = 0.9}},
        {"nesterov ", Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
        {"adagrad ", Adagrad{.lr = 0.1, .weight_decay = 0.01, .initial_accumulator_value = 0.1}},
        {"row_wise_adagrad ", RowWiseAdagrad{.lr = 0.1, .weight_decay = 0.01}},
        {"adam ", Adam{.lr = 0.1, .weight_decay = 0.01}},
        {"adamw ", Adam{.lr = 0.1, .weight_decay = 0.01, .decoupled_weight_decay = true}},
    };
    constexpr std::int64_t rows = 12000;  // about 40 steps per key, so powers of the betas up to 40
    Tensor const keys = some_keys(rows, 300, 6);
    for (auto const& [word, optimizer] : optimizers)
        for (Dtype dtype : float_dtypes) {
            HashMap map = make_map(Capacity{0}, {Dtype::Int64, {}},
                                   optimizer_columns(optimizer, {dtype, {7}}));
            map.update(keys, floats(dtype, {rows, 7}, 7), optimizer,
                       {.missing = Missing::Insert, .initial = floats(dtype, {rows, 7}, 8)});
            Bits bits;
            for (Tensor const& column : map.items().values) bits.add(column);
            expect_recorded(word + std::string(name(dtype)), bits);
        }
}

TEST(RecordedPowers, adam_s_betas) {
    std::vector<double> powers;
    for (double beta : {0.9, 0.999, 0.99999, 0.5, 0.0})
        for (std::int64_t exponent : {0, 1, 2, 3, 10, 37, 1000, 12345, 1000000, 123456789})
            powers.push_back(tensorhash::integer_power(beta, exponent));
    EXPECT_EQ(powers[0], 1.0);
    EXPECT_EQ(powers[1], 0.9);
    EXPECT_NEAR(powers[4], 0.34867844010000000, 1e-15);
    EXPECT_NEAR(powers[16], 0.36769542477096370, 1e-13);
    EXPECT_EQ(powers[40], 1.0) << "0 to the power of 0, as std::pow";
    EXPECT_EQ(powers[41], 0.0);
    expect_recorded("powers", Bits{}.add(Tensor::from(powers)));
}

}  // namespace
}  // namespace th_test
