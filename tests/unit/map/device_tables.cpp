// HashMap on a device: the same results as on the CPU, bit for bit, where the keys came from.
#include "support/emulated.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::Device;
using tensorhash::DeviceError;
using tensorhash::Stream;
using tensorhash::StreamScope;

Element const key{Dtype::Int64, {}};
std::vector<Element> const columns{{Dtype::Float32, {3}}, {Dtype::Int64, {}}};

/// Skips a test where Boost.Context is missing: emulated devices have no tables then.
bool has_tables() {
    try {
        HashMap const map(Capacity{0}, key, {}, emu(0));
        return true;
    } catch (DeviceError const&) {
        return false;
    }
}
#define TH_NEEDS_TABLES()                                                \
    if (!has_tables()) {                                                 \
        GTEST_SKIP() << "emulated devices have no tables without Boost"; \
    }

struct Pair {
    HashMap cpu{Capacity{4}, key, columns};
    HashMap device{Capacity{4}, key, columns, emu(0)};

    void compare() const {
        device.validate();
        EXPECT_EQ(device.size(), cpu.size());
        EXPECT_EQ(device.capacity(), cpu.capacity());
        EXPECT_TRUE(same_bytes(device.active_buf_indices(), cpu.active_buf_indices()));
        auto const here = cpu.items();
        auto const there = device.items();
        EXPECT_EQ(there.keys.device(), emu(0));
        EXPECT_TRUE(same_bytes(there.keys, here.keys));
        for (std::size_t i = 0; i < columns.size(); ++i) {
            EXPECT_TRUE(same_bytes(there.values[i], here.values[i]));
        }
    }
};

void expect_same(Located const& got, Located const& want, Device where) {
    EXPECT_EQ(got.indices.device(), where);
    EXPECT_TRUE(same_bytes(got.indices, want.indices));
    EXPECT_TRUE(same_bytes(got.mask, want.mask));
}

/// One batch of each verb, with the arrays on `home`.
void run_all(Pair& maps, Device home, std::uint64_t seed) {
    auto const there = [&](std::vector<Tensor> tensors) {
        for (Tensor& tensor : tensors) tensor = tensor.to(home);
        return tensors;
    };
    Tensor const keys = make_keys(key, random_ids(300, 200, seed));
    std::vector<Tensor> const values = make_columns(columns, 300, seed);
    Tensor const keys_there = keys.to(home);
    expect_same(maps.device.insert(keys_there, there(values)), maps.cpu.insert(keys, values), home);
    Tensor const others = make_keys(key, random_ids(100, 300, seed + 1));
    EXPECT_TRUE(same_bytes(maps.device.erase(others.to(home)), maps.cpu.erase(others)));
    expect_same(maps.device.find(keys_there), maps.cpu.find(keys), home);
    expect_same(maps.device.activate(others.to(home)), maps.cpu.activate(others), home);
    expect_same(maps.device.accumulate(keys_there, there(values), {Reduce::Sum}),
                maps.cpu.accumulate(keys, values, {Reduce::Sum}), home);
    expect_same(maps.device.insert_or_assign(keys_there, there(values)),
                maps.cpu.insert_or_assign(keys, values), home);
    auto const got = maps.device.get(keys_there);
    auto const want = maps.cpu.get(keys);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        EXPECT_EQ(got[i].device(), home);
        EXPECT_TRUE(same_bytes(got[i], want[i]));
    }
}

TEST(DeviceTable, equals_the_cpu_with_arrays_of_either_side) {
    TH_NEEDS_TABLES();
    Pair maps;
    EXPECT_EQ(maps.device.device(), emu(0));
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        emulated_devices().set_seed(seed);
        run_all(maps, seed % 2 == 0 ? emu(0) : Device{}, seed);
        maps.compare();
    }
    EXPECT_TRUE(same_bytes(maps.device.compact(), maps.cpu.compact()));
    maps.device.reserve(Capacity{5000});
    maps.cpu.reserve(Capacity{5000});
    maps.compare();
    maps.device.clear();
    maps.cpu.clear();
    maps.compare();
}

TEST(DeviceTable, batches_of_several_streams_act_in_order) {
    TH_NEEDS_TABLES();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        emulated_devices().set_seed(seed);
        Pair maps;
        for (std::uint64_t batch = 0; batch < 4; ++batch) {
            StreamScope const scope(Stream{emu(0), emulated_devices().make_stream(0)});
            Tensor const keys = make_keys(key, random_ids(50, 60, batch));
            std::vector<Tensor> const values = make_columns(columns, 50, batch);
            Located const there =
                maps.device.insert(keys.to(emu(0)), {values[0].to(emu(0)), values[1].to(emu(0))});
            expect_same(there, maps.cpu.insert(keys, values), emu(0));
        }
        maps.compare();
    }
}

TEST(DeviceTable, moves_between_devices_with_its_indices) {
    TH_NEEDS_TABLES();
    Pair maps;
    run_all(maps, Device{}, 3);
    HashMap const back = maps.device.to(emu(1)).to(Device{});
    EXPECT_EQ(back.device(), Device{});
    EXPECT_TRUE(same_bytes(back.to_bytes(), maps.cpu.to_bytes()));
    EXPECT_TRUE(same_bytes(maps.device.to_bytes(), maps.cpu.to_bytes()));
    EXPECT_TRUE(same_bytes(maps.device.clone().to_bytes(), maps.cpu.to_bytes()));
}

TEST(DeviceTable, views_are_on_the_device_and_other_devices_are_refused) {
    TH_NEEDS_TABLES();
    Pair maps;
    run_all(maps, Device{}, 5);
    EXPECT_EQ(maps.device.key_tensor().device(), emu(0));
    EXPECT_EQ(maps.device.value_tensor(1).device(), emu(0));
    Tensor const elsewhere = make_keys(key, {1, 2}).to(emu(1));
    std::string const text = message_of<DeviceError>([&] { (void)maps.device.find(elsewhere); });
    EXPECT_TRUE(text.starts_with("keys: expected memory of the CPU or of \"emu:0\"")) << text;
    EXPECT_THROW((void)maps.cpu.find(elsewhere), DeviceError);
    EXPECT_THROW(maps.device.get_into(make_keys(key, {1}), {}, {nullptr, nullptr}, nullptr),
                 DeviceError);
}

}  // namespace
}  // namespace th_test
