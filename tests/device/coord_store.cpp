// The device's CoordStore against the CPU's: the same calls, the same bits, the same sentences.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using tensorhash::coords::SearchMode;

/// How the stores of a test differ.
struct StoreCase {
    char const* name;
    backend::CoordStoreRules rules;
    std::uint32_t columns;      // 0: the first batch sets them
    std::uint32_t first_batch;  // its columns
    std::int64_t far;           // one row in 40 has this number
};

std::ostream& operator<<(std::ostream& out, StoreCase const& store) { return out << store.name; }

class StoreTwins {
public:
    StoreTwins(StoreCase const& store, std::uint64_t seed)
        : case_(store), twins_(seed), random_(seed),
          device_(twins_.device.make_store(store.rules, store.columns)),
          cpu_(twins_.cpu.make_store(store.rules, store.columns)) {}

    void live() {
        compare();
        for (int step = 0; step < 6; ++step) {
            act();
            compare();
        }
        fail();
        compare();
    }

private:
    std::vector<std::int64_t> draw(std::size_t rows, std::int64_t reach, bool far) {
        std::vector<std::int64_t> numbers;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::uint32_t c = 0; c < case_.first_batch; ++c) {
                std::int64_t const low = case_.first_batch > 5 ? 0 : -reach;
                numbers.push_back(c == 0 ? between(random_, 0, 1) : between(random_, low, reach));
            }
            if (far && random_.one_in(40)) {
                numbers.back() = case_.far;
            }
        }
        return numbers;
    }
    TwinRows rows(std::size_t count, std::int64_t reach, bool far) {
        auto const numbers = draw(count, reach, far);
        bool const fit = std::all_of(numbers.begin(), numbers.end(), [](std::int64_t number) {
            return number == static_cast<std::int32_t>(number);
        });
        return twins_.rows(numbers, case_.first_batch, !fit || random_.one_in(3));
    }

    void act() {
        std::size_t const count = 1 + random_.below(90);
        std::uint64_t const what = random_.below(10);
        std::string on_device;
        std::string on_cpu;
        if (what < 6) {
            TwinRows const fresh = rows(count, 4, random_.one_in(3));
            on_device = error_of([&] { device_->insert(fresh.device, "coords"); });
            on_cpu = error_of([&] { cpu_->insert(fresh.cpu, "coords"); });
        } else if (what < 8) {
            TwinRows const base = rows(count / 3 + 1, 4, random_.one_in(4));
            TwinRows const offsets = rows(4, 1, random_.one_in(6));
            on_device = error_of([&] { device_->expand(base.device, offsets.device); });
            on_cpu = error_of([&] { cpu_->expand(base.cpu, offsets.cpu); });
        } else if (what == 8) {
            device_->clear();
            cpu_->clear();
        } else {
            device_->grow_on_demand();
            cpu_->grow_on_demand();
        }
        EXPECT_EQ(on_device, on_cpu);
    }

    /// Inserts rows, then a batch that no store takes, whatever happened before.
    void fail() {
        auto numbers = draw(5, 1, false);
        for (bool const beyond : {false, true}) {
            if (beyond) {
                numbers.back() = std::int64_t{1} << 40;
            }
            TwinRows const fresh = twins_.rows(numbers, case_.first_batch, beyond);
            std::string const error = error_of([&] { device_->insert(fresh.device, "coords"); });
            EXPECT_EQ(error, error_of([&] { cpu_->insert(fresh.cpu, "coords"); }));
            EXPECT_TRUE(!beyond || !error.empty());
        }
    }

    void compare() {
        backend::CoordStoreInfo const got = device_->info();
        backend::CoordStoreInfo const wanted = cpu_->info();
        EXPECT_EQ(got.entries, wanted.entries);
        EXPECT_EQ(got.distinct, wanted.distinct);
        EXPECT_EQ(got.slots, wanted.slots);
        EXPECT_EQ(got.columns, wanted.columns);
        EXPECT_EQ(got.key, wanted.key);
        EXPECT_EQ(got.grows, wanted.grows);
        twins_.expect_same(device_->rows(), cpu_->rows(), "rows");
        twins_.expect_same(device_->unique(), cpu_->unique(), "unique");
        compare_searches();
        EXPECT_EQ(slots_on_device(), slots_on_cpu());
    }

    void compare_searches() {
        TwinRows const queries = rows(60, 5, true);
        for (SearchMode const mode :
             {SearchMode::Linear, SearchMode::DoubleHash, SearchMode::WarpCoop}) {
            twins_.expect_same(device_->search(queries.device, mode),
                               cpu_->search(queries.cpu, mode), "search");
        }
        TwinRows const offsets = rows(3, 2, false);
        twins_.expect_same(device_->search(queries.device, offsets.device),
                           cpu_->search(queries.cpu, offsets.cpu), "search with offsets");
    }

    /// Keys and rows, sorted: where a key lies is not a result.
    using Slots = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
    static Slots sorted(std::vector<tensorhash::step::FlatSlot> const& slots) {
        Slots out;
        for (auto const& slot : slots) {
            out.emplace_back(slot.key, slot.row);
        }
        std::sort(out.begin(), out.end());
        return out;
    }
    Slots slots_on_device() {
        auto const slots = device_->slots();
        if (!slots) {
            return {};
        }
        std::vector<tensorhash::step::FlatSlot> read(
            static_cast<std::size_t>(slots->keys.shape()[0]));
        twins_.queue.copy(read.data(), slots->keys.data(), read.size() * sizeof read[0],
                          tensorhash::device::Copy::Out);
        return sorted(read);
    }
    Slots slots_on_cpu() {
        auto const slots = cpu_->slots();
        if (!slots) {
            return {};
        }
        auto const* const data = static_cast<tensorhash::step::FlatSlot const*>(slots->keys.data());
        return sorted({data, data + slots->keys.shape()[0]});
    }

    StoreCase const& case_;
    CoordTwins twins_;
    Random random_;
    std::unique_ptr<backend::CoordStore> device_;
    std::unique_ptr<backend::CoordStore> cpu_;
};

class DeviceCoordStore : public testing::TestWithParam<StoreCase> {};

TEST_P(DeviceCoordStore, lives_like_the_cpus) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        StoreTwins(GetParam(), seed).live();
    }
}

constexpr std::int64_t kBeyond = std::int64_t{1} << 40;

INSTANTIATE_TEST_SUITE_P(
    Rules, DeviceCoordStore,
    testing::Values(
        StoreCase{"Packed", {false, {}, true, {}, backend::RowRange::Packed64}, 4, 4, 1 << 20},
        StoreCase{"PackedFar", {false, {}, true, {}, backend::RowRange::Packed64}, 4, 4, kBeyond},
        StoreCase{"DoubleHash", {true, {}, true, {}, backend::RowRange::Packed64}, 4, 4, 1 << 20},
        StoreCase{"Full", {false, 64, true, {}, backend::RowRange::Packed64}, 4, 4, 1 << 20},
        StoreCase{"FullDoubleHash", {true, 64, true, {}, backend::RowRange::Packed64}, 4, 4, 7},
        StoreCase{"OneColumn", {false, {}, false, 7, backend::RowRange::Int32}, 0, 1, 511},
        StoreCase{"TwoColumns", {false, {}, false, 7, backend::RowRange::Int32}, 0, 2, 1 << 30},
        StoreCase{"FourColumns", {false, {}, false, 7, backend::RowRange::Int32}, 4, 4, 1 << 30},
        StoreCase{"FourFar", {false, {}, false, {}, backend::RowRange::Int32}, 0, 4, kBeyond},
        StoreCase{"FullWide", {false, 64, false, 7, backend::RowRange::Int32}, 0, 4, 1 << 30},
        StoreCase{"SevenColumns", {false, {}, false, 7, backend::RowRange::Int32}, 0, 7, -5},
        StoreCase{"FullSeven", {false, 128, false, 7, backend::RowRange::Int32}, 7, 7, kBeyond},
        StoreCase{"Packed128", {false, {}, false, {}, backend::RowRange::Packed128}, 0, 4, 70000},
        StoreCase{
            "Packed128Five", {false, {}, false, {}, backend::RowRange::Packed128}, 0, 5, kBeyond}),
    [](auto const& p) { return p.param.name; });

TEST(DeviceCoordStore, the_first_of_several_numbers_out_of_range_is_named) {
    CoordTwins twins(1);
    backend::CoordStoreRules const rules{false, {}, false, {}, backend::RowRange::Packed128};
    auto const on_device = twins.device.make_store(rules, 4);
    auto const on_cpu = twins.cpu.make_store(rules, 4);
    TwinRows const rows = twins.rows(
        {0, 1, 2, 3, 0, 70000, 5, -80000, 0, 90000, 5, 6, 0, 7, -70001, 70002}, 4, false);
    std::string const error = error_of([&] { on_device->insert(rows.device, "coords"); });
    EXPECT_EQ(error, error_of([&] { on_cpu->insert(rows.cpu, "coords"); }));
    EXPECT_NE(error.find("70000"), std::string::npos) << error;
}

TEST(DeviceCoordStore, waits_once_per_insert_and_never_for_a_search) {
    CoordTwins twins(1);
    auto const store = twins.device.make_store({}, 4);
    TwinRows const fresh = twins.rows({0, 1, 2, 3, 0, 4, 5, 6}, 4, true);
    twins.queue.read_backs = 0;
    store->insert(fresh.device, "coords");
    EXPECT_EQ(twins.queue.read_backs, 1u);
    static_cast<void>(store->search(fresh.device, SearchMode::Linear));
    EXPECT_EQ(twins.queue.read_backs, 1u);
}

TEST(DeviceCoordStore, a_failed_allocation_changes_nothing) {
    for (std::uint64_t failing = 0; failing < 8; ++failing) {
        CoordTwins twins(1);
        auto const store = twins.device.make_store({}, 4);
        TwinRows const first = twins.rows({0, 1, 2, 3, 0, 4, 5, 6}, 4, false);
        TwinRows const second = twins.rows({0, 7, 7, 7, 0, 4, 5, 1 << 30}, 4, true);
        store->insert(first.device, "coords");
        twins.queue.failing_allocation = twins.queue.allocations + failing;
        std::string const error = error_of([&] { store->insert(second.device, "coords"); });
        twins.queue.failing_allocation = ~0ull;
        EXPECT_EQ(store->info().entries, error.empty() ? 4u : 2u);
        Tensor const found = store->search(second.device, SearchMode::Linear);
        EXPECT_EQ(twins.tensors.read<std::int32_t>(found),
                  error.empty() ? (std::vector<std::int32_t>{2, 3})
                                : (std::vector<std::int32_t>{-1, -1}));
    }
}

TEST(DeviceCoordStore, a_view_keeps_its_rows) {
    CoordTwins twins(1);
    auto store = twins.device.make_store({}, 2);
    store->insert(twins.rows({1, 2, 3, 4}, 2, false).device, "coords");
    Tensor const before = store->rows();
    store->insert(twins.rows({5, 6}, 2, false).device, "coords");
    store->clear();
    store->insert(twins.rows({7, 8}, 2, false).device, "coords");
    store.reset();
    EXPECT_EQ(twins.tensors.read<std::int32_t>(before), (std::vector<std::int32_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace th_test
