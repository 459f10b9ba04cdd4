// TableView in kernels: every key kind agrees with the oracle, and the example's kernel runs.
#include "device/table.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cuda_words.hpp"
#include "device/lives.hpp"
#include "device/view_bodies.hpp"

#include "06_device_view/neighbours.cuh"

namespace th_test {
namespace {

using Table = tensorhash::device::DeviceTable<TestQueue>;
using tensorhash::TableView;
namespace step = tensorhash::step;

step::IndexView index_of(Table const& table) {
    auto const memory = table.lookup_memory();
    return {memory.buckets, memory.bucket_count, memory.keys, 0, 0, step::secret_of(memory.seed)};
}

/// The element of a table with keys that are viewed as `Key`.
template <class Key>
Element element_of() {
    using Item = typename TableView<Key>::Item;
    if constexpr (std::is_same_v<Key, Voxel3>) {
        return {Dtype::Int32, {3}};
    } else if constexpr (std::is_same_v<Key, Item>) {
        return {tensorhash::dtype_of<Item>, {}};
    } else {
        return {tensorhash::dtype_of<Item>, {sizeof(Key) / sizeof(Item)}};
    }
}

template <class Key>
void expect_finds(std::uint64_t seed) {
    static_assert(std::is_trivially_copyable_v<TableView<Key>>);
    Element const element = element_of<Key>();
    TestQueue queue({.seed = seed});
    Oracle oracle(64, element, {});
    Table table(queue, {element, {}, 64, seed}, tensorhash::Device{});
    Random random(seed);
    auto const batch = [&](std::size_t rows) { return draw_keys(element, random, rows, 250); };
    auto const on_device = [&](Rows const& rows) {
        return OnDevice<unsigned char>(queue, rows.bytes.data(), rows.bytes.size());
    };
    Rows const added = batch(200);
    Rows const gone = batch(60);
    OnDevice<std::int32_t> const indices(queue, added.count);
    OnDevice<unsigned char> const mask(queue, added.count);
    auto const new_keys = on_device(added);
    table.insert({{new_keys.data(), added.count},
                  {},
                  {reinterpret_cast<std::uint32_t*>(indices.data()), mask.data()}});
    auto const erased = on_device(gone);
    table.erase({{erased.data(), gone.count}, mask.data()});
    oracle.insert(added, {});
    oracle.erase(gone);

    Rows const asked = batch(300);
    auto const keys = on_device(asked);
    OnDevice<std::int32_t> const found(queue, asked.count);
    queue.launch(
        asked.count,
        FindByView<Key>{TableView<Key>(index_of(table)), reinterpret_cast<Key const*>(keys.data()),
                        found.data(), static_cast<std::uint32_t>(asked.count)});
    ASSERT_EQ(found.read(), oracle.find(asked).indices) << "seed " << seed;
}

TEST(DeviceView, finds_every_kind_of_key_as_the_oracle_does) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
#define TH_EXPECT(...) expect_finds<__VA_ARGS__>(seed);
        TH_FOR_EACH_VIEWED_KEY(TH_EXPECT)
    }
}

/// Starts the kernel of examples/06_device_view.
void start(TestQueue& queue, Neighbours const& work) {
#if defined(TH_BODIES_PTX)
    queue.launch_kernel("sum_neighbours(Neighbours)", work.rows, work);
#else
    struct Kernel {
        using Shared = tensorhash::device::NoShared;
        Neighbours work;
        void operator()(Shared&) const { sum_neighbours(work); }
    };
    queue.launch(work.rows, Kernel{work});
#endif
}

void expect_sums_of_neighbours(std::uint64_t seed) {
    std::uint32_t const rows = 500;  // more than threads: the kernel's loop goes on
    std::vector<Voxel> voxels;
    std::vector<float> weights;
    for (std::uint32_t i = 0; i < rows; ++i) {
        voxels.push_back({static_cast<std::int32_t>(i), 0, 0});
        weights.push_back(static_cast<float>(i));
    }
    TestQueue queue({.seed = seed});
    Table table(queue, {{Dtype::Int32, {3}}, {{Dtype::Float32, {}}}, rows, 1}, {});
    OnDevice<Voxel> const keys(queue, voxels.data(), rows);
    OnDevice<float> const values(queue, weights.data(), rows);
    OnDevice<std::uint32_t> const indices(queue, rows);
    OnDevice<unsigned char> const mask(queue, rows);
    unsigned char const* const columns[] = {reinterpret_cast<unsigned char const*>(values.data())};
    table.insert({{reinterpret_cast<unsigned char const*>(keys.data()), rows},
                  {columns},
                  {indices.data(), mask.data()}});
    OnDevice<std::int32_t> const counts(queue, rows);
    OnDevice<float> const sums(queue, rows);
    start(queue, {TableView<Voxel>(index_of(table)),
                  reinterpret_cast<float const*>(table.value_tensor(0).data()), keys.data(),
                  counts.data(), sums.data(), rows});
    std::vector<std::int32_t> wanted_counts(rows, 2);
    std::vector<float> wanted_sums;
    wanted_counts.front() = wanted_counts.back() = 1;
    for (std::uint32_t i = 0; i < rows; ++i) {
        float const after = i + 1 < rows ? weights[i + 1] : 0.0f;
        wanted_sums.push_back((i > 0 ? weights[i - 1] : 0.0f) + after);
    }
    EXPECT_EQ(counts.read(), wanted_counts) << "seed " << seed;
    EXPECT_EQ(sums.read(), wanted_sums) << "seed " << seed;
}

TEST(DeviceView, the_kernel_of_the_example_sums_neighbours) {
    for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
        expect_sums_of_neighbours(seed);
    }
}

}  // namespace
}  // namespace th_test
