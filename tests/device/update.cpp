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

/// The same updates on a table of the CPU and on one of the device. Fibers run in host memory, so
/// both take the same pointers.
struct Pair {
    Element key{Dtype::Int64, {}};
    Element weights;
    std::vector<Element> columns;
    FiberQueue queue;
    Random random;
    std::unique_ptr<backend::TableBackend> cpu;
    tensorhash::device::Table<FiberQueue> device;

    Pair(Optimizer const& optimizer, Dtype dtype, std::uint64_t seed)
        : weights{dtype, {3}}, columns(tensorhash::optimizer_columns(optimizer, weights)),
          queue({.seed = seed}), random(seed),
          cpu(backend::cpu_backend().make_table({key, columns, 16, seed}, {})),
          device(queue, {key, columns, 16, seed}, {}) {}

    void update(Optimizer const& optimizer, Lookup lookup, DuplicateKeys duplicates) {
        Rows const keys = draw_keys(key, random, 150, 60);
        tensorhash::Tensor const gradients = make_finite_gradients(150);
        tensorhash::Tensor const initial = make_finite_gradients(150);
        backend::Update batch{};
        batch.keys = {reinterpret_cast<unsigned char const*>(keys.bytes.data()), 150};
        batch.gradient = &weights;
        batch.gradients = static_cast<unsigned char const*>(gradients.data());
        batch.step = &optimizer;
        batch.duplicates = duplicates;
        batch.lookup = lookup;
        batch.initial = {static_cast<unsigned char const*>(initial.data()),
                         random.one_in(2) ? weights.bytes() : 0};
        auto const run = [&](backend::TableBackend& table) {
            OracleLocated out;
            std::vector<std::uint32_t> indices(150);
            out.mask.resize(150);
            batch.out = {indices.data(), out.mask.data()};
            table.update(batch);
            out.indices.assign(indices.begin(), indices.end());
            return out;
        };
        OracleLocated const wanted = run(*cpu);
        OracleLocated const got = run(device);
        ASSERT_EQ(got.indices, wanted.indices);
        ASSERT_EQ(got.mask, wanted.mask);
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
TEST(DeviceUpdate, adam_steps_have_the_bits_of_the_cpu) {
    expect_same_steps(tensorhash::Adam{});
    expect_same_steps(tensorhash::Adam{.weight_decay = 0.01, .decoupled_weight_decay = true});
    expect_same_steps(tensorhash::Adam{.beta1 = 0.5, .weight_decay = 0.01});
}

}  // namespace
}  // namespace th_test
