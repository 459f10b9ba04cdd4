// Code written for the CUDA class MultiGpuHashTable compiles and works: lengths by address, its
// misspelt function name, and the typed lookup table.
#include <cstddef>
#include <numeric>
#include <string>
#include <thread>

#include "support/multi_device.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/sharded/nvidia_hash_table.hpp"

namespace th_test {
namespace {

using tensorhash::MutableNvidiaHashTableOfScalarsT;
using tensorhash::ValueError;

/// A trainer's optimizer: subtracts half of the gradient.
struct Halve {
    void update(float& value, float gradient) const { value -= gradient / 2; }
};

struct GpuStyleCalls : ::testing::Test {
    Mod table{16, ids, 3};
    tensorhash::Stream_event_resource resource = table.stream_event_recource_create(0);
    Keys keys{3, 4, 5, 6, 7, 8};
    Floats vals{30, 40, 50, 60, 70, 80};
    Floats got = Floats(6, -1);
    std::size_t count = 6;
    std::size_t* len = &count;
};

TEST_F(GpuStyleCalls, every_operation_takes_a_length_by_address_and_keeps_it) {
    table.insert(keys.data(), vals.data(), len, resource);
    EXPECT_EQ(table.get_size(), 6u);
    for (float& val : vals) val += 1;
    table.set(keys.data(), vals.data(), len, resource);
    Floats const gradients(6, 2);
    Halve halve;
    table.update(keys.data(), gradients.data(), len, halve, resource);
    table.update(keys.data(), gradients.data(), len, tensorhash::Sgd{.lr = 0.5}, resource);
    table.get(keys.data(), got.data(), len, resource);
    EXPECT_EQ(got, (Floats{29, 39, 49, 59, 69, 79}));
    bool there[6] = {};
    table.get(keys.data(), got.data(), there, len, resource);
    EXPECT_TRUE(there[0] && there[5]);
    count = 2;
    table.remove(keys.data(), len, resource);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(table.get_size(), 4u);
    table.get(keys.data(), got.data(), 6, resource, there);
    EXPECT_TRUE(!there[0] && !there[1] && there[2]);
}

TEST_F(GpuStyleCalls, a_literal_zero_means_no_rows) {
    table.insert(keys.data(), vals.data(), 0, resource);
    table.get(keys.data(), got.data(), nullptr, 0, resource);
    table.dump_to_cpu(0, nullptr, nullptr, 0, 16);
    EXPECT_EQ(table.get_size(), 0u);
}

TEST_F(GpuStyleCalls, a_dump_takes_the_capacity_and_returns_the_rows_written) {
    std::size_t one = 3;
    table.insert_from_cpu(1, Keys{1, 4, 7}.data(), vals.data(), &one, 16);
    Keys out(6, -1);
    table.dump_to_cpu(1, out.data(), got.data(), len, 16);
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(out, (Keys{1, 4, 7, -1, -1, -1}));
    EXPECT_EQ(got, (Floats{30, 40, 50, -1, -1, -1}));
    count = 3;
    table.dump_to_gpu(1, out.data(), got.data(), len);
    EXPECT_EQ(count, 3u);
    table.dump_to_gpu(0, out.data(), got.data(), len);
    EXPECT_EQ(count, 0u);
}

TEST_F(GpuStyleCalls, too_small_arrays_and_null_lengths_are_refused_before_writing) {
    table.insert(keys.data(), vals.data(), len, resource);
    Keys out(6, -1);
    count = 1;
    EXPECT_THROW(table.dump_to_cpu(0, out.data(), got.data(), len, 16), ValueError);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(out, Keys(6, -1));
    EXPECT_EQ(got, Floats(6, -1));
    std::size_t* const none = nullptr;
    EXPECT_THROW(table.insert(keys.data(), vals.data(), none, resource), ValueError);
    EXPECT_THROW(table.dump_to_gpu(0, out.data(), got.data(), none), ValueError);
    EXPECT_EQ(table.get_size(), 6u);
}

using Lookup = MutableNvidiaHashTableOfScalarsT<Key, float>;

TEST(NvidiaTable, find_keeps_the_shape_of_the_keys_and_fills_in_the_default) {
    Lookup table(0, {"cpu:0", "cpu:1"});
    EXPECT_EQ(Lookup::key_dtype(), Dtype::Int64);
    EXPECT_EQ(Lookup::value_dtype(), Dtype::Float32);
    table.insert(Tensor::from<Key>({1, 2, 1}), Tensor::from<float>({10, 20, 11}));
    EXPECT_EQ(table.size(), 2u);
    Tensor const keys = Tensor::from<Key>({1, 9, 2, 8}, {2, 2});
    Tensor const found = table.find(keys, -1);
    EXPECT_EQ(found.shape(), (Shape{2, 2}));
    EXPECT_EQ(to_vector<float>(found), (Floats{11, -1, 20, -1}));
    EXPECT_EQ(to_vector<float>(table.find(keys)), (Floats{11, 0, 20, 0}));
    EXPECT_EQ(to_vector<float>(table.find(keys, Tensor::from<float>({1, 2, 3, 4}, {2, 2}))),
              (Floats{11, 2, 20, 4}));
    Tensor const one = table.find(Tensor::from<Key>({2}).reshape({}), 0);
    EXPECT_EQ(one.shape(), Shape{});
    table.remove(Tensor::from<Key>({1, 7}));
    EXPECT_EQ(table.size(), 1u);
    EXPECT_GT(table.memory_used(), sizeof(table));
}

TEST(NvidiaTable, import_replaces_everything_or_nothing) {
    Lookup table(0, {"cpu:0", "cpu:1", "cpu:2"});
    Keys many(1000);
    std::iota(many.begin(), many.end(), -500);
    table.insert(Tensor::from(many), Tensor::from(Floats(1000, 1)));
    Tensor const two = Tensor::from<Key>({5, 6});
    EXPECT_THROW(table.import_values(two, Tensor::from<float>({1})), ValueError);
    EXPECT_THROW(table.import_values(two, Tensor::from<double>({1, 2})), tensorhash::TypeError);
    EXPECT_EQ(table.size(), 1000u);
    table.import_values(two, Tensor::from<float>({50, 60}));
    tensorhash::Items const all = table.export_values();
    EXPECT_EQ(table.size(), 2u);
    EXPECT_EQ(to_vector<float>(table.find(all.keys)), to_vector<float>(all.values.at(0)));
    EXPECT_EQ(to_vector<float>(table.find(two)), (Floats{50, 60}));
    table.table().map().validate();
}

TEST(NvidiaTable, readers_see_the_old_table_or_the_new_one) {
    Lookup table(0, {"cpu:0", "cpu:1"});
    Keys numbers(64);
    std::iota(numbers.begin(), numbers.end(), 0);
    Tensor const keys = Tensor::from(numbers);
    table.insert(keys, Tensor::from(Floats(64, 0)));
    std::thread writer([&] {
        for (int round = 1; round <= 50; ++round)
            table.import_values(keys, Tensor::from(Floats(64, static_cast<float>(round))));
    });
    for (int round = 0; round < 50; ++round) {
        Floats const seen = to_vector<float>(table.find(keys, -1));
        EXPECT_EQ(seen, Floats(64, seen[0]));
        EXPECT_GE(seen[0], 0.0f);
    }
    writer.join();
    EXPECT_EQ(to_vector<float>(table.find(keys)), Floats(64, 50));
}

TEST(NvidiaTable, wrong_shapes_and_dtypes_are_refused) {
    Lookup table;
    Tensor const keys = Tensor::from<Key>({1, 2});
    EXPECT_THROW(table.insert(keys, Tensor::from<float>({1})), ValueError);
    EXPECT_THROW(table.insert(Tensor::from<float>({1}), Tensor::from<float>({1})),
                 tensorhash::TypeError);
    EXPECT_THROW(table.find(keys, Tensor::from<float>({1, 2, 3})), ValueError);
    EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace th_test
