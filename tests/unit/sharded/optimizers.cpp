// MultiDeviceHashTable::update with the library's optimizers, as far as one value column allows.
#include <array>

#include "support/multi_device.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"

namespace th_test {
namespace {

using tensorhash::MultiDeviceHashTable;
using tensorhash::Sgd;

TEST(MultiDeviceOptimizer, sgd_gives_the_bits_of_one_table) {
    using Row = std::array<float, 3>;
    MultiDeviceHashTable<Key, Row> table(16, ids, 3);
    auto resource = table.stream_event_resource_create(0);
    tensorhash::HashMap one(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Float32, {3}}});
    Keys keys;
    std::vector<Row> rows, gradients;
    Random random(3);
    for (std::size_t i = 0; i < 900; ++i) {
        keys.push_back(static_cast<Key>(random.below(300)) * 5);
        auto const x = static_cast<float>(random.below(1000)) / 7;
        rows.push_back({x, -x, 1});
        gradients.push_back({x / 3, 1, x});
    }
    std::size_t const known = 400;  // some keys of later rows are absent
    table.insert(keys.data(), rows.data(), known, resource);
    auto const borrowed = [](std::vector<Row> const& of, std::size_t n) {
        return Tensor::borrow(static_cast<void const*>(of.data()),
                              {static_cast<std::int64_t>(n), 3}, Dtype::Float32);
    };
    one.insert(Tensor::from(Keys(keys.begin(), keys.begin() + known)), {borrowed(rows, known)});
    Sgd const sgd{.lr = 0.25, .weight_decay = 0.125};
    Bits const found = Use<Mod>::status(keys.size(), [&](bool* out) {
        table.update(keys.data(), gradients.data(), keys.size(), sgd, resource, out);
    });
    auto const want = one.update(Tensor::from(keys), borrowed(gradients, keys.size()), sgd);
    auto const* const there = static_cast<unsigned char const*>(want.mask.data());
    EXPECT_EQ(found, Bits(there, there + keys.size()));
    EXPECT_NE(found, Bits(keys.size(), 1));
    std::vector<Row> got(keys.size());
    table.get(keys.data(), got.data(), nullptr, keys.size(), resource);
    EXPECT_TRUE(same_bytes(borrowed(got, got.size()), one.get(Tensor::from(keys))[0]));
}

template <class Call>
void expect_message(Call call, std::string const& part) {
    try {
        call();
        FAIL() << "expected an error with: " << part;
    } catch (tensorhash::Error const& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(MultiDeviceOptimizer, optimizers_with_state_are_refused_with_a_message) {
    Use<Mod> use;
    use.insert({1, 2}, {10, 20});
    Keys const keys{1, 2};
    Floats const gradients{1, 1};
    auto const step = [&](tensorhash::Optimizer const& optimizer) {
        use.table.update(keys.data(), gradients.data(), 2, optimizer, use.resource);
    };
    expect_message([&] { step(tensorhash::Adagrad{}); }, "Adagrad needs 2 value columns");
    expect_message([&] { step(tensorhash::Adam{}); }, "Adam needs 4 value columns");
    expect_message([&] { step(Sgd{.momentum = 0.5}); }, "needs 2 value columns");
    expect_message([&] { step(Sgd{.lr = -1}); }, "optimizer: lr");
    expect_message([&] { use.table.update(keys.data(), nullptr, 2, Sgd{}, use.resource); },
                   "gradients: expected memory");
    EXPECT_EQ(use.get(keys), (Floats{10, 20}));
    struct Opaque {
        float weight;
    };
    MultiDeviceHashTable<Key, Opaque> other(4, ids, 2);
    Opaque const slope{1};
    expect_message([&] { other.update(keys.data(), &slope, 1, Sgd{}, use.resource); },
                   "optimizer: weights, the first value column, must be float");
}

}  // namespace
}  // namespace th_test
