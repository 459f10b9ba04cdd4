// The CPU's back end: memory, and a change in two steps equals the change in one.
#include <algorithm>
#include <functional>
#include <numeric>

#include "backend/loader.hpp"
#include "backend/table_backend.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using tensorhash::Device;

Element const int_key{Dtype::Int64, {}};
std::vector<Element> const one_column{{Dtype::Float32, {}}};

backend::DeviceBackend& cpu_backend() { return backend::backend_for(Device{}, "device"); }

TEST(CpuBackend, copies_are_done_when_the_call_returns) {
    auto& cpu = cpu_backend();
    std::vector<int> const from{1, 2, 3};
    std::vector<int> to(3);
    cpu.copy_between(to.data(), Device{}, from.data(), Device{}, sizeof(int) * 3);
    EXPECT_EQ(to, from);
    tensorhash::Event const event = cpu.record({});
    cpu.wait({}, event);
    cpu.synchronize({});
    auto const memory = cpu.allocate(100, Device{});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data) % 64, 0u);
}

/// A table with some entries, and a batch that partly hits them.
struct Shard {
    Shard() : table(cpu_backend().make_table({int_key, one_column, 4}, Device{})) {
        std::iota(keys.begin(), keys.end(), 0);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            keys[i] %= 700;
            rows[i] = static_cast<float>(i);
        }
        table->insert({first(100), values(), out()});
        table->erase({first(40), mask.data()});
    }

    backend::KeyRows first(std::size_t count) const {
        return {reinterpret_cast<backend::Bytes>(keys.data()), count};
    }
    backend::ValueRows values() const { return {columns}; }
    backend::Answers out() { return {indices.data(), mask.data()}; }
    /// Everything visible: keys, values, free stack, capacity, results.
    std::string image() const {
        backend::TableImage const now = table->to_cpu();
        std::string bytes = std::to_string(now.capacity) + " " + std::to_string(now.top) + " ";
        for (std::uint32_t const index : now.free) bytes += std::to_string(index) + " ";
        bytes.append(reinterpret_cast<char const*>(now.keys), now.top * sizeof(std::int64_t));
        bytes.append(reinterpret_cast<char const*>(now.values[0]), now.top * sizeof(float));
        return bytes;
    }

    std::vector<std::int64_t> keys = std::vector<std::int64_t>(1000);
    std::vector<float> rows = std::vector<float>(1000);
    std::vector<backend::Bytes> columns{reinterpret_cast<backend::Bytes>(rows.data())};
    std::vector<std::uint32_t> indices = std::vector<std::uint32_t>(1000);
    std::vector<unsigned char> mask = std::vector<unsigned char>(1000);
    std::vector<std::int32_t> old_to_new = std::vector<std::int32_t>(2000);
    std::unique_ptr<backend::TableBackend> table;
};

struct Verb {
    char const* name;
    std::function<backend::Change(Shard&)> change;
    std::function<void(Shard&)> direct;
};

Reduce const sum = Reduce::Sum;
tensorhash::Optimizer const sgd = tensorhash::Sgd{};

backend::Update update_of(Shard& shard, backend::Lookup lookup) {
    return {shard.first(1000),
            one_column.data(),
            shard.columns[0],
            &sgd,
            tensorhash::DuplicateKeys::Sum,
            lookup,
            {},
            shard.out()};
}

std::vector<Verb> const verbs{
    {"insert", [](Shard& s) { return backend::Insert{s.first(1000), s.values(), s.out()}; },
     [](Shard& s) { s.table->insert({s.first(1000), s.values(), s.out()}); }},
    {"activate", [](Shard& s) { return backend::Activate{s.first(1000), s.out()}; },
     [](Shard& s) { s.table->activate({s.first(1000), s.out()}); }},
    {"insert_or_assign",
     [](Shard& s) { return backend::InsertOrAssign{s.first(1000), s.values(), s.out()}; },
     [](Shard& s) { s.table->insert_or_assign({s.first(1000), s.values(), s.out()}); }},
    {"accumulate",
     [](Shard& s) { return backend::Accumulate{s.first(1000), s.values(), {&sum, 1}, s.out()}; },
     [](Shard& s) { s.table->accumulate({s.first(1000), s.values(), {&sum, 1}, s.out()}); }},
    {"update", [](Shard& s) { return update_of(s, backend::Lookup::Insert); },
     [](Shard& s) { s.table->update(update_of(s, backend::Lookup::Insert)); }},
    {"update what is there", [](Shard& s) { return update_of(s, backend::Lookup::Find); },
     [](Shard& s) { s.table->update(update_of(s, backend::Lookup::Find)); }},
    {"erase", [](Shard& s) { return backend::Erase{s.first(70), s.mask.data()}; },
     [](Shard& s) { s.table->erase({s.first(70), s.mask.data()}); }},
    {"reserve", [](Shard&) { return backend::Reserve{5000}; },
     [](Shard& s) { s.table->reserve({5000}); }},
    {"compact", [](Shard& s) { return backend::Compact{s.old_to_new.data()}; },
     [](Shard& s) { s.table->compact({s.old_to_new.data()}); }},
    {"shrink", [](Shard&) { return backend::Shrink{}; },
     [](Shard& s) { s.table->finish(s.table->prepare(backend::Shrink{})); }},
};

TEST(TableBackend, a_change_in_two_steps_equals_the_change_in_one) {
    for (Verb const& verb : verbs) {
        Shard one;
        Shard two;
        verb.direct(one);
        two.table->finish(two.table->prepare(verb.change(two)));
        EXPECT_EQ(one.image(), two.image()) << verb.name;
        EXPECT_EQ(one.indices, two.indices) << verb.name;
        EXPECT_EQ(one.mask, two.mask) << verb.name;
        EXPECT_EQ(one.old_to_new, two.old_to_new) << verb.name;
        two.table->validate();
    }
}

TEST(TableBackend, a_cancelled_change_leaves_the_table_as_it_was) {
    for (Verb const& verb : verbs) {
        Shard shard;
        std::string const before = shard.image();
        shard.table->cancel(shard.table->prepare(verb.change(shard)));
        EXPECT_EQ(shard.image(), before) << verb.name;
        shard.table->validate();
        verb.direct(shard);
        shard.table->validate();
    }
}

TEST(TableBackend, an_image_gives_the_same_table) {
    Shard shard;
    backend::TableImage const image = shard.table->to_cpu();
    auto copy = cpu_backend().make_table({int_key, one_column, image.capacity}, Device{});
    copy->from_cpu(image);
    copy->validate();
    std::string const before = shard.image();
    std::swap(shard.table, copy);
    EXPECT_EQ(shard.image(), before);
}

TEST(TableBackend, lists_from_any_index_on) {
    Shard shard;
    std::vector<std::int32_t> all(60);
    EXPECT_EQ(shard.table->list(0, 60, all.data()), 60u);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    for (std::uint64_t begin : {0u, 1u, 40u, 63u, 64u, 99u, 100u, 1000u}) {
        std::vector<std::int32_t> expected;
        std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                     [&](std::int32_t index) { return index >= static_cast<int>(begin); });
        expected.resize(std::min<std::size_t>(expected.size(), 5));
        std::vector<std::int32_t> some(5);
        some.resize(shard.table->list(begin, 5, some.data()));
        EXPECT_EQ(some, expected) << begin;
    }
}

}  // namespace
}  // namespace th_test
