// HashMap on a device: the same results as on the CPU, bit for bit, where the keys came from.
#include <thread>

#include "support/emulated.hpp"
#include "support/fixtures.hpp"
#include "support/views.hpp"

namespace th_test {
namespace {

using tensorhash::Device;
using tensorhash::DeviceError;
using tensorhash::Stream;
using tensorhash::StreamScope;

Element const key{Dtype::Int64, {}};
std::vector<Element> const columns{{Dtype::Float32, {3}}, {Dtype::Int64, {}}};

bool has_tables() {
    try {
        HashMap const map(Capacity{0}, key, {}, emu(0));
        return true;
    } catch (DeviceError const&) {
        return false;
    }
}
#define TH_NEEDS_TABLES() TH_SKIP_UNLESS_EMULATED(has_tables())

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

/// How often the host waits for the device during a call.
template <class Call>
std::size_t waits_of(Call const& call) {
    std::size_t const before = emulated_devices().waits(0);
    call();
    return emulated_devices().waits(0) - before;
}

TEST(DeviceTable, the_host_waits_only_for_sizes) {
    TH_NEEDS_TABLES();
    HashMap map(Capacity{4000}, key, columns, emu(0));
    Tensor const keys = make_keys(key, sequence(400)).to(emu(0));
    std::vector<Tensor> values = make_columns(columns, 400, 1);
    for (Tensor& column : values) column = column.to(emu(0));
    EXPECT_EQ(waits_of([&] { map.insert(keys, values); }), 0u);
    EXPECT_EQ(waits_of([&] { map.insert_or_assign(keys, values); }), 0u);
    EXPECT_EQ(waits_of([&] { (void)map.find(keys); }), 0u);
    EXPECT_EQ(waits_of([&] { (void)map.get(keys); }), 0u);
    EXPECT_EQ(waits_of([&] { map.erase(keys); }), 0u);
    EXPECT_EQ(waits_of([&] { map.activate(keys); }), 0u);
    EXPECT_EQ(waits_of([&] { (void)map.size(); }), 1u);
    map.clear();
    EXPECT_EQ(waits_of([&] { (void)map.active_buf_indices(); }), 1u);
    map.clear();
    EXPECT_EQ(waits_of([&] { (void)map.items(); }), 1u);
    EXPECT_EQ(waits_of([&] { (void)tensorhash::unique(keys); }), 1u);
    map.insert(keys, values);
    Tensor const more = make_keys(key, sequence(6000, 200)).to(emu(0));
    EXPECT_LE(waits_of([&] { map.activate(more); }), 3u);
    EXPECT_EQ(map.size(), 6200);
}

TEST(DeviceTable, a_view_shows_the_table_until_it_grows_and_outlives_it) {
    TH_NEEDS_TABLES();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        emulated_devices().set_seed(seed);
        Tensor view;
        {
            StreamScope const scope(Stream{emu(0), emulated_devices().make_stream(0)});
            HashMap map(Capacity{2}, key, {{Dtype::Int64, {}}}, emu(0));
            map.insert(int64_keys({10, 20}), {int64_keys({1, 2})});
            view = map.value_tensor();
            write_element<std::int64_t>(view, 0, 7);
            write_element<std::int64_t>(view, 1, 8);
            EXPECT_EQ(to_vector<std::int64_t>(map.get(int64_keys({20, 10}))[0]),
                      (std::vector<std::int64_t>{8, 7}));
            map.insert(int64_keys({30, 40, 50}), {int64_keys({3, 4, 5})});
            write_element<std::int64_t>(view, 0, 9);
            EXPECT_EQ(to_vector<std::int64_t>(map.get(int64_keys({20, 50}))[0]),
                      (std::vector<std::int64_t>{8, 5}));
        }
        EXPECT_EQ(to_vector<std::int64_t>(view), (std::vector<std::int64_t>{9, 8}));
    }
}

TEST(DeviceTable, threads_use_their_own_streams) {
    TH_NEEDS_TABLES();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        emulated_devices().set_seed(seed);
        HashMap map(Capacity{8}, key, {}, emu(0));
        Tensor const keys = int64_keys({1, 2, 3}).to(emu(0));
        std::thread([&] { map.activate(keys); }).join();
        Tensor const found = map.contains(keys);
        EXPECT_EQ(mask_of(found), (std::vector<std::uint8_t>{1, 1, 1})) << "seed " << seed;
    }
}

TEST(DeviceTable, unique_runs_where_the_array_is) {
    TH_NEEDS_TABLES();
    Tensor const keys = make_keys(key, random_ids(300, 50, 1));
    auto const here = tensorhash::unique(keys);
    auto const there = tensorhash::unique(keys.to(emu(0)));
    EXPECT_EQ(there.rows.device(), emu(0));
    EXPECT_TRUE(same_bytes(there.rows, here.rows));
    EXPECT_TRUE(same_bytes(there.index, here.index));
    EXPECT_TRUE(same_bytes(there.inverse, here.inverse));
    EXPECT_TRUE(same_bytes(there.counts, here.counts));
}

TEST(DeviceTable, refusals_name_the_way_out) {
    TH_NEEDS_TABLES();
    HashMap map(Capacity{2}, key, {{Dtype::Float32, {}}}, emu(0));
    tensorhash::RowStep const step = [](tensorhash::UpdateRow const&) {};
    std::string const text = message_of<DeviceError>(
        [&] { map.update(int64_keys({1}), Tensor::zeros({1}, Dtype::Float32), step); });
    EXPECT_NE(text.find(".cpu()"), std::string::npos) << text;
}

}  // namespace
}  // namespace th_test
