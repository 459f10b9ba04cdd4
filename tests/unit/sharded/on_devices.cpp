// ShardedHashMap over two emulated devices with memories of their own: the same results as on the
// CPU, bit for bit, where the keys came from.
// Over 400 lines: all tests share the devices and the twins.
#include <algorithm>
#include <thread>

#include "support/emulated.hpp"
#include "support/sharded_twin.hpp"
#include "tensorhash/sharded/multi_device_hash_table.hpp"

namespace th_test {
namespace {

using tensorhash::DeviceError;
using tensorhash::DuplicateKeys;
using tensorhash::Missing;
using tensorhash::Stream;
using tensorhash::StreamScope;
using tensorhash::ValueError;

Element const key{Dtype::Int64, {}};
std::vector<Element> const columns{{Dtype::Float32, {3}}, {Dtype::Int64, {}}};

std::vector<Device> both() { return {emu(0), emu(1)}; }

bool has_tables() {
    try {
        HashMap const map(Capacity{0}, key, {}, emu(0));
        return true;
    } catch (DeviceError const&) {
        return false;
    }
}
#define TH_NEEDS_TABLES() TH_SKIP_UNLESS_EMULATED(has_tables())

std::vector<Tensor> moved(std::vector<Tensor> tensors, Device to) {
    for (Tensor& tensor : tensors) tensor = tensor.to(to);
    return tensors;
}

struct Pair {
    explicit Pair(std::string const& policy)
        : cpu(Capacity{4}, key, columns, cpus(2), tensorhash::policy_from_name(policy)),
          device(Capacity{4}, key, columns, both(), tensorhash::policy_from_name(policy)) {}

    void compare() const {
        device.validate();
        EXPECT_EQ(device.size(), cpu.size());
        EXPECT_EQ(device.capacity(), cpu.capacity());
        EXPECT_TRUE(same_bytes(device.to_bytes(), cpu.to_bytes()));
        EXPECT_TRUE(same_bytes(device.active_buf_indices(), cpu.active_buf_indices()));
        EXPECT_EQ(device.keys().device(), emu(0));
        for (std::size_t shard = 0; shard < 2; ++shard) {
            auto const here = cpu.items(shard);
            auto const there = device.items(shard);
            EXPECT_EQ(there.keys.device(), both()[shard]);
            EXPECT_TRUE(same_bytes(there.keys, here.keys));
            for (std::size_t i = 0; i < columns.size(); ++i)
                EXPECT_TRUE(same_bytes(there.values[i], here.values[i]));
        }
    }

    ShardedHashMap cpu;
    ShardedHashMap device;
};

void expect_same(ShardedLocated const& got, ShardedLocated const& want, Device where) {
    EXPECT_EQ(got.indices.device(), where);
    EXPECT_EQ(got.mask.device(), where);
    EXPECT_TRUE(same_bytes(got.indices, want.indices));
    EXPECT_TRUE(same_bytes(got.mask, want.mask));
}
void expect_same(Tensor const& got, Tensor const& want, Device where) {
    EXPECT_EQ(got.device(), where);
    EXPECT_TRUE(same_bytes(got, want));
}
void expect_same(std::vector<Tensor> const& got, std::vector<Tensor> const& want, Device where) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], want[i], where);
}

/// One batch of each verb, with the arrays on `home`.
void run_all(Pair& maps, Device home, std::uint64_t seed) {
    std::size_t const rows = seed % 5 == 0 ? 3 : 300;  // three keys rarely reach both shards
    Tensor const keys = make_keys(key, random_ids(rows, 200, seed));
    std::vector<Tensor> const values = make_columns(columns, rows, seed);
    Tensor const there = keys.to(home);
    std::vector<Tensor> const values_there = moved(values, home);
    expect_same(maps.device.insert(there, values_there), maps.cpu.insert(keys, values), home);
    Tensor const others = make_keys(key, random_ids(100, 300, seed + 1));
    expect_same(maps.device.erase(others.to(home)), maps.cpu.erase(others), home);
    expect_same(maps.device.find(there), maps.cpu.find(keys), home);
    expect_same(maps.device.contains(there), maps.cpu.contains(keys), home);
    expect_same(maps.device.shard_of(there), maps.cpu.shard_of(keys), home);
    expect_same(maps.device.activate(others.to(home)), maps.cpu.activate(others), home);
    expect_same(maps.device.accumulate(there, values_there, {Reduce::Sum}),
                maps.cpu.accumulate(keys, values, {Reduce::Sum}), home);
    expect_same(maps.device.insert_or_assign(there, values_there),
                maps.cpu.insert_or_assign(keys, values), home);
    std::vector<Tensor> const more = make_columns(columns, 100, seed + 2);
    expect_same(maps.device.assign(others.to(home), moved(more, home)),
                maps.cpu.assign(others, more), home);
    Tensor const absent = make_keys(key, random_ids(rows, 1000, seed + 3));
    expect_same(maps.device.get(absent.to(home)), maps.cpu.get(absent), home);
    expect_same(maps.device.get(absent.to(home), values_there), maps.cpu.get(absent, values), home);
    std::vector<Tensor> const one{make_values({Dtype::Float32, {3}}, 1, 5).reshape({3}),
                                  make_values({Dtype::Int64, {}}, 1, 6).reshape({})};
    expect_same(maps.device.get(absent.to(home), moved(one, home)), maps.cpu.get(absent, one),
                home);
}

TEST(ShardedOnDevices, equals_the_cpu_with_arrays_of_the_host_and_of_either_device) {
    TH_NEEDS_TABLES();
    Device const homes[] = {Device{}, emu(0), emu(1)};
    for (std::string const policy : {"hash", "mod"}) {
        Pair maps(policy);
        for (std::uint64_t seed = 1; seed <= 9; ++seed) {
            emulated_devices().set_seed(seed);
            run_all(maps, homes[seed % 3], seed);
            maps.compare();
        }
        auto const got = maps.device.compact();
        auto const want = maps.cpu.compact();
        for (std::size_t shard = 0; shard < 2; ++shard)
            EXPECT_TRUE(same_bytes(got[shard], want[shard]));
        maps.compare();
        maps.device.reserve(Capacity{5000});
        maps.cpu.reserve(Capacity{5000});
        maps.compare();
        maps.device.shrink_to_fit();
        maps.cpu.shrink_to_fit();
        maps.compare();
        ShardedHashMap const copy = maps.device.clone();
        EXPECT_TRUE(same_bytes(copy.to_bytes(), maps.cpu.to_bytes()));
        maps.device.clear();
        maps.cpu.clear();
        maps.compare();
        EXPECT_EQ(copy.size(), copy.keys().shape()[0]);
    }
}

TEST(ShardedOnDevices, optimizers_give_the_bits_of_the_cpu) {
    TH_NEEDS_TABLES();
    std::vector<Element> const state(2, {Dtype::Float32, {4}});
    ShardedHashMap cpu(Capacity{0}, key, state, cpus(2));
    ShardedHashMap device(Capacity{0}, key, state, both());
    tensorhash::Adagrad const adagrad{.lr = 0.5};
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        emulated_devices().set_seed(seed);
        Device const home = both()[seed % 2];
        Tensor const keys = make_keys(key, random_ids(200, 150, seed));
        Tensor const gradients = make_finite_values(state[0], 200, seed);
        Tensor const initial = make_finite_values(state[0], 200, seed + 9);
        tensorhash::UpdateOptions options;
        options.missing = seed == 1 ? Missing::Insert : Missing::Skip;
        if (seed == 1) options.initial = initial;
        tensorhash::UpdateOptions there = options;
        if (seed == 1) there.initial = initial.to(home);
        if (seed % 2 == 0) options.duplicates = there.duplicates = DuplicateKeys::Sum;
        expect_same(device.update(keys.to(home), gradients.to(home), adagrad, there),
                    cpu.update(keys, gradients, adagrad, options), home);
        EXPECT_TRUE(same_bytes(device.to_bytes(), cpu.to_bytes())) << "seed " << seed;
    }
    tensorhash::UpdateOptions strict;
    strict.missing = Missing::Error;
    Tensor const keys = make_keys(key, {0, 5000});  // the second is absent
    Tensor const gradients = make_finite_values(state[0], 2, 1);
    EXPECT_THROW(device.update(keys, gradients, adagrad, strict), tensorhash::KeyError);
    EXPECT_TRUE(same_bytes(device.to_bytes(), cpu.to_bytes()));
}

// Waits: for the number of rows of each shard. The devices work on while the host goes on.
TEST(ShardedOnDevices, a_call_waits_for_the_rows_of_each_shard_only) {
    TH_NEEDS_TABLES();
    ShardedHashMap map(Capacity{4000}, key, columns, both());
    Tensor const keys = make_keys(key, sequence(300)).to(emu(0));
    std::vector<Tensor> const values = moved(make_columns(columns, 300, 1), emu(0));
    auto const waits = [&](auto&& call) {
        std::size_t const before = emulated_devices().waits(0) + emulated_devices().waits(1);
        call();
        return emulated_devices().waits(0) + emulated_devices().waits(1) - before;
    };
    EXPECT_EQ(waits([&] { map.insert(keys, values); }), 1u);
    EXPECT_EQ(waits([&] { (void)map.find(keys); }), 1u);
    EXPECT_EQ(waits([&] { (void)map.get(keys); }), 1u);
    EXPECT_EQ(waits([&] { map.insert_or_assign(keys, values); }), 1u);
    EXPECT_EQ(waits([&] { map.assign(keys, values); }), 1u);
    EXPECT_EQ(waits([&] { map.erase(keys); }), 1u);
}

TEST(ShardedOnDevices, a_shard_without_memory_changes_no_shard) {
    TH_NEEDS_TABLES();
    // Values of 2 MB: a few for shard 0 fit, but 2000 for shard 1 exceed the memory of its device.
    ShardedHashMap map(Capacity{0}, key, {{Dtype::Int64, {1 << 18}}}, both(),
                       tensorhash::mod_policy());
    map.activate(int64_keys({0}));
    std::int64_t const before = map.capacity();
    std::vector<std::int64_t> many{2, 4};
    for (std::int64_t i = 0; i < 2000; ++i) many.push_back(2 * i + 1);
    for (Device const home : {Device{}, emu(0), emu(1)}) {
        Tensor const keys = int64_keys(many).to(home);
        EXPECT_THROW(map.activate(keys), std::bad_alloc);
        EXPECT_EQ(map.size(), 1);
        EXPECT_EQ(map.capacity(), before);
        EXPECT_EQ(mask_of(map.contains(int64_keys({0, 2, 1}))),
                  (std::vector<std::uint8_t>{1, 0, 0}));
    }
    map.activate(int64_keys({1, 2}));
    EXPECT_EQ(map.size(), 3);
}

TEST(ShardedOnDevices, batches_of_several_streams_and_threads_act_in_order) {
    TH_NEEDS_TABLES();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        emulated_devices().set_seed(seed);
        Pair maps("hash");
        for (std::uint64_t batch = 0; batch < 4; ++batch) {
            Tensor const keys = make_keys(key, random_ids(50, 60, batch));
            std::vector<Tensor> const values = make_columns(columns, 50, batch);
            Device const home = both()[batch % 2];
            auto const insert = [&] {
                StreamScope const first(Stream{emu(0), emulated_devices().make_stream(0)});
                StreamScope const second(Stream{emu(1), emulated_devices().make_stream(1)});
                return maps.device.insert(keys.to(home), moved(values, home));
            };
            ShardedLocated there;
            if (batch == 2) {
                std::thread([&] {
                    there = maps.device.insert(keys.to(home), moved(values, home));
                }).join();
            } else {
                there = insert();
            }
            expect_same(there, maps.cpu.insert(keys, values), home);
        }
        maps.compare();
    }
}

TEST(ShardedOnDevices, files_move_between_the_cpu_and_devices_with_their_indices) {
    TH_NEEDS_TABLES();
    Pair maps("mod");
    run_all(maps, emu(1), 4);
    Tensor const image = maps.cpu.to_bytes();
    ShardedHashMap const there = ShardedHashMap::from_bytes(image, both());
    EXPECT_TRUE(same_bytes(there.to_bytes(), image));
    there.validate();
    // One device, and another policy: keys are routed again.
    ShardedHashMap const one = ShardedHashMap::from_bytes(maps.device.to_bytes(), {emu(1)});
    EXPECT_EQ(one.size(), maps.cpu.size());
    one.validate();
    ShardedHashMap const hashed =
        ShardedHashMap::from_bytes(image, both(), tensorhash::hash_policy());
    EXPECT_EQ(hashed.size(), maps.cpu.size());
    Tensor const keys = maps.cpu.keys();
    expect_same(hashed.get(keys), maps.cpu.get(keys), Device{});
    hashed.validate();
}

TEST(ShardedOnDevices, replace_and_from_items_fill_the_shards) {
    TH_NEEDS_TABLES();
    Tensor const keys = make_keys(key, random_ids(200, 90, 1));
    std::vector<Tensor> const values = make_columns(columns, 200, 1);
    ShardedHashMap map = ShardedHashMap::from_items(keys.to(emu(1)), moved(values, emu(1)), both());
    ShardedHashMap const cpu = ShardedHashMap::from_items(keys, values, cpus(2));
    EXPECT_TRUE(same_bytes(map.to_bytes(), cpu.to_bytes()));
    Tensor const others = make_keys(key, sequence(5, 1000));
    std::vector<Tensor> const fresh = make_columns(columns, 5, 2);
    map.replace(others.to(emu(0)), moved(fresh, emu(0)));
    EXPECT_EQ(map.size(), 5);
    expect_same(map.get(others), fresh, Device{});
}

TEST(ShardedOnDevices, the_callers_memory_gets_values_and_entries) {
    TH_NEEDS_TABLES();
    Tensor const keys = make_keys(key, random_ids(200, 90, 1));
    std::vector<Tensor> const values = make_columns(columns, 200, 1);
    ShardedHashMap const map = ShardedHashMap::from_items(keys, values, both());
    for (Device const home : {Device{}, emu(0), emu(1)}) {
        Tensor floats = Tensor::zeros({200, 3}, Dtype::Float32, home);
        Tensor found = Tensor::zeros({200}, Dtype::Bool, home);
        map.get_into(keys.to(home), {}, {floats.data(), nullptr}, static_cast<bool*>(found.data()));
        EXPECT_TRUE(same_bytes(floats, map.get(keys)[0]));
        EXPECT_EQ(mask_of(found), std::vector<std::uint8_t>(200, 1));
    }
    std::string all_keys, all_numbers;
    std::vector<std::int64_t> all_indices;
    for (std::int64_t next = 0; next >= 0;) {
        std::vector<std::int64_t> some, numbers, indices;
        next = map.export_from(next, std::int64_t{1} << 62, 7, [&](std::int64_t rows) {
            auto const count = static_cast<std::size_t>(rows);
            some.resize(count), numbers.resize(count), indices.resize(count);
            return tensorhash::ShardedRoom{some.data(), {nullptr, numbers.data()}, indices.data()};
        });
        all_keys += bytes_of(Tensor::from(some));
        all_numbers += bytes_of(Tensor::from(numbers));
        all_indices.insert(all_indices.end(), indices.begin(), indices.end());
    }
    EXPECT_EQ(all_keys, bytes_of(map.keys()));
    EXPECT_EQ(all_numbers, bytes_of(map.items().values[1]));
    EXPECT_EQ(all_indices, to_vector<std::int64_t>(map.active_buf_indices()));
}

TEST(ShardedOnDevices, insert_into_names_the_row_of_another_shard) {
    TH_NEEDS_TABLES();
    ShardedHashMap map(Capacity{0}, key, {}, both(), tensorhash::mod_policy());
    map.insert_into(1, int64_keys({1, 3}).to(emu(0)), {});
    EXPECT_EQ(map.size(1), 2);
    EXPECT_EQ(message_of<ValueError>([&] { map.insert_into(1, int64_keys({5, 6}), {}); }),
              "keys: row 1 belongs to emu:0, not to emu:1; use insert(), which sends each row to "
              "its shard");
    EXPECT_EQ(map.size(), 2);
}

TEST(ShardedOnDevices, what_devices_cannot_do_is_refused_with_a_sentence) {
    TH_NEEDS_TABLES();
    auto const every_third = [](int shards, std::int64_t k) {
        return static_cast<int>(k / 3 % shards);
    };
    auto const thirds = tensorhash::policy_of<std::int64_t>("thirds", every_third);
    EXPECT_EQ(
        message_of<DeviceError>([&] { ShardedHashMap(Capacity{0}, key, {}, both(), thirds); }),
        "policy: shards on \"emu:0\" take \"hash\" or \"mod\", got \"thirds\"; use one of them, or "
        "a "
        "table on the CPU, such as that of .cpu()");
    ShardedHashMap const cpu(Capacity{0}, key, {}, cpus(2), thirds);
    EXPECT_THROW(ShardedHashMap::from_bytes(cpu.to_bytes(), both(), thirds), DeviceError);
    EXPECT_TRUE(message_of<DeviceError>([&] {
                    ShardedHashMap(tensorhash::Bound{Capacity{9}}, key, {}, both());
                }).starts_with("devices: bounded tables are on the CPU only"));
    EXPECT_EQ(message_of<ValueError>(
                  [&] { ShardedHashMap(Capacity{0}, key, {}, {{Device::Type::Cpu, 1}, emu(0)}); }),
              "devices: expected devices of one type, got \"cpu:1\" and \"emu:0\"");
    ShardedHashMap map(Capacity{0}, key, {{Dtype::Float32, {}}}, both());
    auto const step = [](std::size_t, void* const*) {};
    EXPECT_EQ(
        message_of<DeviceError>([&] { map.update(int64_keys({1}), step); }),
        "update by a function: expected a table on the CPU, this one is on \"emu:0\"; copy it "
        "with .cpu()");
    ShardedHashMap one(Capacity{0}, key, {}, {emu(1)});
    EXPECT_TRUE(message_of<DeviceError>([&] {
                    one.activate(int64_keys({1}).to(emu(0)));
                }).starts_with("keys: expected memory of the CPU or of \"emu:1\""));
    Tensor const values = Tensor::zeros({1}, Dtype::Float32, emu(1));
    EXPECT_TRUE(message_of<DeviceError>([&] {
                    map.insert(int64_keys({1}).to(emu(0)), {values});
                }).starts_with("values: expected memory of the CPU or of \"emu:0\""));
    EXPECT_EQ(map.size(), 0);
}

// The verbs of nv::MultiGpuHashTable: batches in memory of the resource's device.
TEST(MultiDeviceOnDevices, pointers_are_memory_of_the_resources_device) {
    TH_NEEDS_TABLES();
    using Table =
        tensorhash::MultiGpuHashTable<std::int64_t, float, tensorhash::ModPolicy<std::int64_t>>;
    Table table(16, {"emu:0", "emu:1"});
    std::vector<std::int64_t> const host{4, 7, 9, 4};
    std::vector<float> const numbers{1, 2, 3, 4};
    for (int const id : {0, 1}) {
        auto resource = table.stream_event_resource_create(id);
        table.clear(resource);
        Device const at = emu(id);
        Tensor const keys = Tensor::from(host).to(at);
        Tensor const vals = Tensor::from(numbers).to(at);
        Tensor got = Tensor::zeros({4}, Dtype::Float32, at);
        Tensor status = Tensor::zeros({4}, Dtype::Bool, at);
        auto const* const d_keys = static_cast<std::int64_t const*>(keys.data());
        auto const* const d_vals = static_cast<float const*>(vals.data());
        auto* const d_status = static_cast<bool*>(status.data());
        table.insert(d_keys, d_vals, 4, resource, d_status);
        EXPECT_EQ(mask_of(status), (std::vector<std::uint8_t>{1, 1, 1, 0}));
        table.set(d_keys, d_vals, 4, resource, d_status);
        EXPECT_EQ(mask_of(status), (std::vector<std::uint8_t>{1, 1, 1, 1}));
        table.get(d_keys, static_cast<float*>(got.data()), d_status, 4, resource);
        EXPECT_EQ(to_vector<float>(got), (std::vector<float>{4, 2, 3, 4}));
        table.update(d_keys, d_vals, 4, tensorhash::Sgd{.lr = 1}, resource, d_status);
        table.get(d_keys, static_cast<float*>(got.data()), 4, resource);
        EXPECT_EQ(to_vector<float>(got), (std::vector<float>{-1, 0, 0, -1}));
        table.remove(d_keys, 2, resource, d_status);
        EXPECT_EQ(table.get_size(), 1u);
        EXPECT_EQ(table.get_size(1), 1u);
    }
}

TEST(MultiDeviceOnDevices, insert_from_cpu_and_the_dumps_copy_between_host_and_device) {
    TH_NEEDS_TABLES();
    tensorhash::MultiGpuHashTable<std::int64_t, float, tensorhash::ModPolicy<std::int64_t>> table(
        16, {"emu:0", "emu:1"});
    std::int64_t const keys[] = {1, 3, 5};
    float const vals[] = {1, 2, 3};
    bool added[3] = {};
    table.insert_from_cpu(1, keys, vals, 3, 2, 2, added);
    EXPECT_TRUE(added[0] && added[1] && added[2]);
    EXPECT_THROW(table.insert_from_cpu(0, keys, vals, 3, 2), ValueError);
    std::int64_t got_keys[3];
    float got_vals[3];
    table.dump_to_cpu(1, got_keys, got_vals, 3, 2);
    EXPECT_TRUE(std::equal(keys, keys + 3, got_keys) && std::equal(vals, vals + 3, got_vals));
    Tensor there = Tensor::zeros({4}, Dtype::Int64, emu(1));
    Tensor floats = Tensor::zeros({4}, Dtype::Float32, emu(1));
    std::size_t len = 4;
    table.dump_to_gpu(1, static_cast<std::int64_t*>(there.data()),
                      static_cast<float*>(floats.data()), &len);
    EXPECT_EQ(len, 3u);
    EXPECT_EQ(to_vector<std::int64_t>(there), (std::vector<std::int64_t>{1, 3, 5, 0}));
    EXPECT_EQ(to_vector<float>(floats), (std::vector<float>{1, 2, 3, 0}));
    EXPECT_EQ(message_of<ValueError>([&] { table.dump_to_cpu(0, got_keys, got_vals, 3, 2); }),
              "len: expected 0, the size of emu:0, got 3");
}

}  // namespace
}  // namespace th_test
