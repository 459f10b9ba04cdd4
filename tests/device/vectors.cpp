// The device's VectorStore against the CPU's: the same calls, the same bits, the same sentences.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <memory>
#include <optional>

namespace th_test {
namespace {

namespace backend = tensorhash::backend;

class VectorTwins {
public:
    VectorTwins(std::uint64_t seed, std::uint32_t columns, std::optional<std::uint64_t> slots)
        : twins_(seed), random_(seed), columns_(columns),
          device_(twins_.device.make_vectors(slots)), cpu_(twins_.cpu.make_vectors(slots)) {}

    void live() {
        compare();
        for (int step = 0; step < 6; ++step) {
            if (random_.one_in(8)) {
                device_->grow_on_demand();
                cpu_->grow_on_demand();
            } else {
                insert(1 + random_.below(90), random_.one_in(5));
            }
            compare();
        }
        // A batch that fails in the table's own slots, whatever happened before.
        insert(3, false);
        insert(1, true);
        compare();
    }
    void set_columns() {
        device_->set_columns(columns_);
        cpu_->set_columns(columns_);
    }

private:
    TwinRows draw(std::size_t rows, bool beyond) {
        std::vector<std::int64_t> numbers;
        for (std::size_t i = 0; i < rows * columns_; ++i) {
            numbers.push_back(between(random_, 0, columns_ < 3 ? 12 : 2));
        }
        if (beyond) {
            numbers[random_.below(numbers.size())] = std::int64_t{1} << 32;
        }
        return twins_.rows(numbers, columns_, beyond || random_.one_in(3));
    }

    void insert(std::size_t count, bool beyond) {
        TwinRows const fresh = draw(count, beyond);
        std::uint64_t const before = twins_.queue.read_backs;
        std::string const error = error_of([&] { device_->insert(fresh.device); });
        if (error.empty()) {
            EXPECT_EQ(twins_.queue.read_backs - before, 1u);
        }
        EXPECT_EQ(error, error_of([&] { cpu_->insert(fresh.cpu); }));
    }

    void compare() {
        backend::VectorStoreInfo const got = device_->info();
        backend::VectorStoreInfo const wanted = cpu_->info();
        EXPECT_EQ(got.entries, wanted.entries);
        EXPECT_EQ(got.distinct, wanted.distinct);
        EXPECT_EQ(got.slots, wanted.slots);
        EXPECT_EQ(got.columns, wanted.columns);
        EXPECT_EQ(got.grows, wanted.grows);
        twins_.expect_same(device_->rows(), cpu_->rows(), "rows");
        twins_.expect_same(device_->unique(), cpu_->unique(), "unique");
        std::uint64_t const before = twins_.queue.read_backs;
        TwinRows const queries = draw(60, random_.one_in(2));
        twins_.expect_same(device_->search(queries.device), cpu_->search(queries.cpu), "search");
        EXPECT_EQ(twins_.queue.read_backs, before);
        compare_slots();
    }

    /// Which slot a key gets is storage, but each slot names itself, and the rows are the same.
    void compare_slots() {
        Tensor const there = device_->slots();
        Tensor const here = cpu_->slots();
        ASSERT_EQ(there.shape(), here.shape());
        auto const got = twins_.tensors.read<std::int32_t>(there);
        auto const wanted = here.as<std::int32_t>();
        std::vector<std::int32_t> rows, wanted_rows;
        for (std::size_t i = 0; i < got.size(); i += 2) {
            EXPECT_EQ(got[i], got[i + 1] == -1 ? -1 : static_cast<std::int32_t>(i / 2));
            rows.push_back(got[i + 1]);
            wanted_rows.push_back(wanted[i + 1]);
        }
        std::sort(rows.begin(), rows.end());
        std::sort(wanted_rows.begin(), wanted_rows.end());
        EXPECT_EQ(rows, wanted_rows);
    }

    CoordTwins twins_;
    Random random_;
    std::uint32_t columns_;
    std::unique_ptr<backend::VectorStore> device_;
    std::unique_ptr<backend::VectorStore> cpu_;
};

TEST(DeviceVectors, live_as_on_the_cpu) {
    for (std::uint64_t seed = 1; seed <= std::max<std::uint64_t>(seeds(8), 8); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        constexpr std::uint32_t kColumns[] = {1, 2, 3, 4, 9};
        std::optional<std::uint64_t> const slots =
            seed % 2 == 0 ? std::optional<std::uint64_t>(64) : std::nullopt;
        VectorTwins twins(seed, kColumns[seed % 5], slots);
        if (seed % 3 == 0) {
            twins.set_columns();
        }
        twins.live();
    }
}

}  // namespace
}  // namespace th_test
