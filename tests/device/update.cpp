// Optimizer steps on the device's table against the CPU's, bit for bit.
#include "device/table.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/loader.hpp"
#include "device/lives.hpp"

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using backend::Lookup;
using tensorhash::DuplicateKeys;
using tensorhash::Optimizer;

/// The same updates on a table of the CPU and on one of the device.
struct Pair {
    Element key{Dtype::Int64, {}};
    Element weights;
    std::vector<Element> columns;
    TestQueue queue;
    Random random;
    std::unique_ptr<backend::TableBackend> cpu;
    tensorhash::device::DeviceTable<TestQueue> device;

    Pair(Optimizer const& optimizer, Dtype dtype, std::uint64_t seed)
        : weights{dtype, {3}}, columns(tensorhash::optimizer_columns(optimizer, weights)),
          queue({.seed = seed}), random(seed),
          cpu(backend::backend_for({}, "device").make_table({key, columns, 16, seed}, {})),
          device(queue, {key, columns, 16, seed}, {}) {}

    void update(Optimizer const& optimizer, Lookup lookup, DuplicateKeys duplicates) {
        constexpr std::size_t kRows = 150;
        Rows const keys = draw_keys(key, random, kRows, 60);
        tensorhash::Tensor const gradients = make_finite_gradients(kRows);
        tensorhash::Tensor const initial = make_finite_gradients(kRows);
        std::vector<std::uint32_t> indices(kRows);
        std::vector<unsigned char> mask(kRows);
        backend::Update batch{};
        batch.keys = {reinterpret_cast<unsigned char const*>(keys.bytes.data()), kRows};
        batch.gradient = &weights;
        batch.gradients = static_cast<unsigned char const*>(gradients.data());
        batch.step = &optimizer;
        batch.duplicates = duplicates;
        batch.lookup = lookup;
        batch.initial = {static_cast<unsigned char const*>(initial.data()),
                         random.one_in(2) ? weights.bytes() : 0};
        batch.out = {indices.data(), mask.data()};
        cpu->update(batch);

        OnDevice<unsigned char> const device_keys(queue, keys.bytes.data(), keys.bytes.size());
        OnDevice<unsigned char> const device_gradients(queue, gradients.data(), gradients.bytes());
        OnDevice<unsigned char> const device_initial(queue, initial.data(), initial.bytes());
        OnDevice<std::uint32_t> const device_indices(queue, kRows);
        OnDevice<unsigned char> const device_mask(queue, kRows);
        batch.keys.data = device_keys.data();
        batch.gradients = device_gradients.data();
        batch.initial.data = device_initial.data();
        batch.out = {device_indices.data(), device_mask.data()};
        device.update(batch);
        ASSERT_EQ(device_indices.read(), indices);
        ASSERT_EQ(device_mask.read(), mask);
    }
    tensorhash::Tensor make_finite_gradients(std::size_t rows) {
        return make_finite_values(weights, rows, random.next());
    }
    void expect_same_values() {
        ASSERT_EQ(device.sizes().entries, cpu->sizes().entries);
        backend::TableImage const wanted = cpu->to_cpu();
        backend::TableImage const got = device.to_cpu();
        for (std::size_t c = 0; c < columns.size(); ++c) {
            std::size_t const bytes = wanted.top * columns[c].bytes();
            ASSERT_EQ(std::memcmp(got.values[c], wanted.values[c], bytes), 0) << "column " << c;
        }
    }
};

void expect_same_steps(Optimizer const& optimizer) {
    for (Dtype const dtype : {Dtype::Float16, Dtype::BFloat16, Dtype::Float32, Dtype::Float64}) {
        for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
            Pair pair(optimizer, dtype, seed);
            for (auto const duplicates : {DuplicateKeys::InOrder, DuplicateKeys::Sum}) {
                pair.update(optimizer, Lookup::Insert, duplicates);
                pair.update(optimizer, Lookup::Find, duplicates);
                pair.expect_same_values();
            }
        }
    }
}

TEST(DeviceUpdate, sgd_steps_have_the_bits_of_the_cpu) {
    expect_same_steps(tensorhash::Sgd{.lr = 0.1});
    expect_same_steps(tensorhash::Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
    expect_same_steps(tensorhash::Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true});
}
TEST(DeviceUpdate, adagrad_steps_have_the_bits_of_the_cpu) {
    expect_same_steps(tensorhash::Adagrad{});
    expect_same_steps(tensorhash::Adagrad{.weight_decay = 0.01, .initial_accumulator_value = 0.1});
}
TEST(DeviceUpdate, row_wise_adagrad_steps_have_the_bits_of_the_cpu) {
    expect_same_steps(tensorhash::RowWiseAdagrad{});
    expect_same_steps(
        tensorhash::RowWiseAdagrad{.weight_decay = 0.01, .initial_accumulator_value = 0.1});
}
TEST(DeviceUpdate, adam_steps_have_the_bits_of_the_cpu) {
    expect_same_steps(tensorhash::Adam{});
    expect_same_steps(tensorhash::Adam{.weight_decay = 0.01, .decoupled_weight_decay = true});
    expect_same_steps(tensorhash::Adam{.beta1 = 0.5, .weight_decay = 0.01});
}

}  // namespace
}  // namespace th_test
