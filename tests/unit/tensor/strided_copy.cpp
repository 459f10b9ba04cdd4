// Strided copies against a naive loop over all subscripts: random shapes and strides, including
// zero and negative strides.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "support/fixtures.hpp"
#include "tensor/copy.hpp"

namespace th_test {
namespace {

/// Copies one element after the other.
std::string naive(char const* from, Shape const& shape, Shape const& strides, std::size_t bytes) {
    std::string out;
    Shape at(shape.size(), 0);
    for (std::int64_t left = tensorhash::num_elements(shape); left > 0; --left) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) offset += at[d] * strides[d];
        out.append(from + offset, bytes);
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++at[d] < shape[d]) break;
            at[d] = 0;
        }
    }
    return out;
}

struct Strided {
    Shape shape, strides;
    std::vector<char> memory;
    std::size_t origin = 0;
};

/// A random tensor with elements of `bytes`. Strides need not be multiples of the element size.
Strided random_strided(Random& random, std::int64_t bytes, std::int64_t most_elements) {
    Strided out;
    std::size_t rank = random.below(5);
    std::int64_t budget = most_elements;
    for (std::size_t d = 0; d < rank; ++d) {
        std::int64_t size =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(budget)) + 1);
        if (random.one_in(4)) size = 1;
        out.shape.push_back(size);
        budget = std::max<std::int64_t>(1, budget / size);
        std::int64_t stride = static_cast<std::int64_t>(random.below(40)) - 20;
        if (random.one_in(2)) stride = bytes * (random.one_in(2) ? 1 : -3);
        out.strides.push_back(stride);
    }
    // Half of the time the last dimensions are dense, to test merging them.
    if (rank > 1 && random.one_in(2)) {
        out.strides[rank - 1] = bytes;
        out.strides[rank - 2] = bytes * out.shape[rank - 1];
    }
    std::int64_t low = 0, high = bytes;
    for (std::size_t d = 0; d < rank; ++d) {
        std::int64_t reach = (out.shape[d] - 1) * out.strides[d];
        (reach < 0 ? low : high) += reach;
    }
    out.memory.resize(static_cast<std::size_t>(high - low));
    for (char& byte : out.memory) byte = static_cast<char>(random.next());
    out.origin = static_cast<std::size_t>(-low);
    return out;
}

class StridedCopy : public OverThreads {};
INSTANTIATE_TEST_SUITE_P(Threads, StridedCopy, ::testing::Values(1, 2, 8));

TEST_P(StridedCopy, gathers_the_same_as_the_naive_loop) {
    Random random(42);
    for (int round = 0; round < 600; ++round) {
        std::int64_t bytes = std::int64_t{1} << random.below(4);
        Strided s = random_strided(random, bytes, round % 20 == 0 ? 200000 : 300);
        std::string want =
            naive(s.memory.data() + s.origin, s.shape, s.strides, static_cast<std::size_t>(bytes));
        std::string got(want.size(), '?');
        tensorhash::gather_strided(got.data(), s.memory.data() + s.origin, s.shape, s.strides,
                                   static_cast<std::size_t>(bytes));
        ASSERT_EQ(got, want) << "round " << round;
    }
}

TEST_P(StridedCopy, contiguous_and_clone_copy_any_strides) {
    Random random(43);
    for (int round = 0; round < 200; ++round) {
        Strided s = random_strided(random, 4, 500);
        char* at = s.memory.data() + s.origin;
        Tensor tensor = Tensor::borrow_strided(at, s.shape, s.strides, Dtype::Float32, true);
        std::string want = naive(at, s.shape, s.strides, 4);
        EXPECT_TRUE(same_bytes(tensor, want));
        Tensor copy = tensor.clone();
        EXPECT_FALSE(copy.read_only());
        EXPECT_TRUE(copy.is_contiguous());
        EXPECT_TRUE(same_bytes(copy, want));
        EXPECT_NE(static_cast<Tensor const&>(copy).data(), static_cast<void const*>(at));
    }
}

TEST(TensorBasics, strides_determine_contiguity) {
    std::int64_t memory[12] = {};
    auto with = [&](Shape shape, Shape strides) {
        return Tensor::borrow_strided(memory, std::move(shape), std::move(strides), Dtype::Int64,
                                      false);
    };
    EXPECT_TRUE(with({3, 4}, {32, 8}).is_contiguous());
    EXPECT_FALSE(with({4, 3}, {8, 32}).is_contiguous());
    EXPECT_TRUE(with({1, 4}, {999, 8}).is_contiguous())
        << "the stride of a single row means nothing";
    EXPECT_TRUE(with({0, 4}, {5, 5}).is_contiguous());
    EXPECT_TRUE(with({}, {}).is_contiguous());
    EXPECT_FALSE(with({3}, {0}).is_contiguous());
    EXPECT_FALSE(with({3}, {-8}).is_contiguous());
}

TEST(TensorBasics, typed_access_is_checked) {
    Tensor tensor = Tensor::zeros({3, 2}, Dtype::Int32);
    EXPECT_EQ(tensor.as<std::int32_t>().size(), 6u);
    EXPECT_THROW(tensor.as<float>(), tensorhash::TypeError);
    EXPECT_THROW(tensor.reshape({4}), tensorhash::ValueError);
    EXPECT_THROW(Tensor::from(std::vector<int>{1, 2, 3}, {2, 2}), tensorhash::ValueError);
    EXPECT_THROW(Tensor::zeros({-1}, Dtype::Int32), tensorhash::ValueError);
    EXPECT_THROW(Tensor::zeros({2}, Dtype::Undefined), tensorhash::TypeError);
    EXPECT_THROW(Tensor::borrow_strided(nullptr, {2}, {4, 4}, Dtype::Int32, false),
                 tensorhash::ValueError);
}

TEST(TensorBasics, an_owner_is_held_as_long_as_any_copy_lives) {
    auto owner = std::make_shared<std::vector<std::int64_t>>(4, 7);
    std::weak_ptr<void> watch = owner;
    Tensor tensor = Tensor::borrow(owner->data(), {4}, Dtype::Int64, owner);
    owner.reset();
    Tensor other = tensor.reshape({2, 2}).as_read_only();
    tensor = Tensor();
    EXPECT_FALSE(watch.expired());
    EXPECT_TRUE(other.read_only());
    EXPECT_EQ(other.as<std::int64_t>()[3], 7);
    other = Tensor();
    EXPECT_TRUE(watch.expired());
}

TEST(TensorBasics, names_of_dtypes_and_devices_round_trip) {
    for (int d = 1; d <= 13; ++d) {
        auto dtype = static_cast<Dtype>(d);
        EXPECT_EQ(tensorhash::dtype_from_name(tensorhash::name(dtype)), dtype);
        EXPECT_GT(tensorhash::byte_size(dtype), 0u);
    }
    EXPECT_EQ(tensorhash::byte_size(Dtype::Undefined), 0u);
    EXPECT_THROW(tensorhash::dtype_from_name("complex64"), tensorhash::TypeError);
    for (char const* text : {"cpu", "CPU", "cpu:0", "CPU:0", "Cpu:0"})
        EXPECT_EQ(to_string(tensorhash::Device::parse(text)), "cpu:0") << text;
    EXPECT_EQ(tensorhash::Device::parse("CUDA:1"),
              (tensorhash::Device{tensorhash::Device::Type::Cuda, 1}));
    for (char const* text :
         {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cpu:0x", "cuda 0", ":0", "cuda:99999999999999"})
        EXPECT_THROW(tensorhash::Device::parse(text), tensorhash::ValueError) << text;
    EXPECT_EQ(tensorhash::to_string(Shape{}), "()");
    EXPECT_EQ(tensorhash::to_string(Shape{3}), "(3,)");
    EXPECT_EQ(tensorhash::to_string(Shape{2, 3}), "(2, 3)");
}

}  // namespace
}  // namespace th_test
