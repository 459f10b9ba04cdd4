// FlatIndex and CoordIndex against a dictionary: every key kind, duplicates, shifts, growth,
// a full table.
#include "coords/tables/coord_index.hpp"

#include <algorithm>
#include <limits>

#include "coords/api/arguments.hpp"
#include "support/coords.hpp"
#include "tensorhash/coords/packed_key.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/flat.hpp"

namespace {

using namespace tensorhash::coords;
using namespace th_test;
using tensorhash::cpu::FlatWindow;
using tensorhash::index::FlatIndex;

constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();

class CoordIndexTest : public OverThreads {};
TH_OVER_THREADS(CoordIndexTest);

CoordRows int32_rows(Coords const& rows, std::size_t columns) {
    return check_rows(tensor_of<std::int32_t>(rows, columns), "coords",
                      static_cast<std::uint32_t>(columns));
}

std::vector<std::int32_t> found(CoordIndex const& index, CoordRows const& queries) {
    std::vector<std::int32_t> out(queries.rows, -7);
    index.find(queries, out.data());
    std::vector<std::int32_t> by_windows(queries.rows, -7);
    index.find(queries, by_windows.data(), FlatWindow::FourBuckets);
    EXPECT_EQ(out, by_windows);
    return out;
}

struct Case {
    std::size_t columns;
    std::int64_t low, high;
    CoordKey kind;
};

constexpr Case cases[] = {
    {1, 0, 0, CoordKey::Packed64},
    {2, -50, 50, CoordKey::Packed64},
    {3, -60, 60, CoordKey::Packed64},
    {4, -20, 20, CoordKey::Packed64},
    {4, -131072, 131071, CoordKey::Packed64},
    {4, kLow, kHigh, CoordKey::Packed128},
    {4, 131060, 131080, CoordKey::Packed128},
    {2, kLow, kHigh, CoordKey::Wide},
    {3, kLow, kHigh, CoordKey::Wide},
    {5, -5, 5, CoordKey::Wide},
    {6, -3, 3, CoordKey::Wide},
    {7, -2, 2, CoordKey::Wide},
};

TEST_P(CoordIndexTest, FindsTheFirstOfEqualRowsWhateverTheKey) {
    for (Case const& c : cases) {
        SCOPED_TRACE(std::to_string(c.columns) + " columns from " + std::to_string(c.low));
        Coords rows = random_rows(8500, c.columns, c.low, c.high, 1);
        for (std::size_t i = 0; i < 1000; ++i) rows.push_back(rows[i * 3]);  // certain duplicates
        RowOracle oracle;
        oracle.insert(rows);
        Coords const others = random_rows(4000, c.columns, c.low, c.high, 2);
        for (bool const double_hash : {false, true}) {
            CoordIndex const index(int32_rows(rows, c.columns), {.double_hash = double_hash});
            EXPECT_EQ(index.kind(), c.kind);
            EXPECT_EQ(index.distinct(), oracle.distinct());
            EXPECT_EQ(found(index, int32_rows(rows, c.columns)), oracle.find(rows));
            EXPECT_EQ(found(index, int32_rows(others, c.columns)), oracle.find(others));
        }
    }
}

TEST_P(CoordIndexTest, Int64QueriesBeyondInt32AreNotFound) {
    for (std::int64_t const high : {std::int64_t{100}, kHigh}) {
        Coords const rows = random_rows(3000, 4, -high, high, 3);
        CoordIndex const index(int32_rows(rows, 4));
        RowOracle oracle;
        oracle.insert(rows);
        Coords queries = rows;
        for (std::size_t i = 0; i < queries.size(); i += 3) queries[i][i % 4] += 1ll << 32;
        CoordRows const wide = check_rows(tensor_of<std::int64_t>(queries, 4), "q", 4);
        EXPECT_EQ(found(index, wide), oracle.find(queries));
    }
}

TEST_P(CoordIndexTest, ShiftedQueriesNeverWrap) {
    for (Case const& c : cases) {
        Coords const rows = random_rows(5000, c.columns, c.low, c.high, 4);
        CoordIndex const index(int32_rows(rows, c.columns));
        RowOracle oracle;
        oracle.insert(rows);
        Shift shift;
        for (std::size_t i = 0; i < c.columns; ++i) {
            shift.scale[i] = i == 0 ? 1 : 2;
            shift.offset[i] = i == 0 ? 0 : (i % 2 == 0 ? 1 : -1);
        }
        Coords queries = rows;  // half of each row, so that many shifted rows exist
        Coords shifted = rows;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            for (std::size_t i = 1; i < c.columns; ++i) {
                if (r % 4 != 0) queries[r][i] = (rows[r][i] - shift.offset[i]) / 2;
                shifted[r][i] = queries[r][i] * 2 + shift.offset[i];
            }
        }
        CoordRows const given = int32_rows(queries, c.columns);
        std::vector<std::int32_t> out(rows.size() - 7, -7);
        index.find_shifted(given.data(), 7, rows.size(), shift, out.data());
        std::vector<std::int32_t> const all = oracle.find(shifted);
        EXPECT_EQ(out, std::vector<std::int32_t>(all.begin() + 7, all.end()));
    }
}

TEST_P(CoordIndexTest, ExtendingKeepsTheRowsAndWidensTheKey) {
    Coords all = random_rows(10, 4, -30, 30, 5);
    CoordIndex index(int32_rows(all, 4));
    for (unsigned step = 0; step < 4; ++step) {
        std::int64_t const reach = step < 3 ? 30 : kHigh;
        Coords const more = random_rows(7000, 4, -reach, reach, 6 + step);
        all.insert(all.end(), more.begin(), more.end());
        index.extend(int32_rows(all, 4));
        RowOracle oracle;
        oracle.insert(all);
        EXPECT_EQ(index.kind(), step < 3 ? CoordKey::Packed64 : CoordKey::Packed128);
        EXPECT_EQ(index.distinct(), oracle.distinct());
        EXPECT_EQ(found(index, int32_rows(all, 4)), oracle.find(all));
    }
}

TEST_P(CoordIndexTest, NoRowsAreOrdinary) {
    for (std::size_t columns = 1; columns <= 7; ++columns) {
        CoordIndex const index(int32_rows({}, columns));
        Coords const queries = random_rows(100, columns, -2, 2, 7);
        EXPECT_EQ(found(index, int32_rows(queries, columns)), std::vector<std::int32_t>(100, -1));
        EXPECT_TRUE(found(index, int32_rows({}, columns)).empty());
    }
}

TEST_P(CoordIndexTest, AFlatIndexFillsToTheLastSlotThenRefusesWholeBatches) {
    for (bool const double_hash : {false, true}) {
        for (std::uint64_t const capacity : {1u, 2u, 8u, 16u, 16384u}) {
            FlatIndex index(capacity, double_hash, tensorhash::step::secret_of(capacity));
            std::vector<std::uint64_t> keys;
            for (std::uint64_t i = 0; i < capacity; ++i) keys.push_back(kValidBit | i * i * 77);
            ASSERT_TRUE(index.insert(keys.data(), keys.size() / 2, 0));
            std::size_t const before = keys.size() / 2;
            // Twice the capacity does not fit. The old keys stay, and no new key is added.
            std::vector<std::uint64_t> too_many;
            for (std::uint64_t i = 0; i < 2 * capacity; ++i) {
                too_many.push_back(kValidBit | (i + 5) << 40);
            }
            EXPECT_FALSE(
                index.insert(too_many.data(), too_many.size(), static_cast<std::uint32_t>(before)));
            EXPECT_EQ(index.size(), before);
            ASSERT_TRUE(index.insert(keys.data() + before, keys.size() - before,
                                     static_cast<std::uint32_t>(before)));
            EXPECT_EQ(index.size(), capacity);
            std::vector<std::int32_t> out(keys.size());
            index.find_keys(keys.data(), keys.size(), out.data());
            for (std::size_t i = 0; i < keys.size(); ++i) {
                ASSERT_EQ(out[i], static_cast<std::int32_t>(i));
            }
            std::vector<std::int32_t> missing(64, -7);
            std::size_t const asked = std::min<std::size_t>(64, too_many.size());
            index.find_keys(too_many.data(), asked, missing.data());
            for (std::size_t i = 0; i < asked; ++i) EXPECT_EQ(missing[i], -1);
        }
    }
}

// Two threads rarely meet at one key, so this calls the step directly, out of row order.
TEST(FlatIndexSlots, TheSmallestRowStaysWhicheverComesFirst) {
    namespace step = tensorhash::step;
    std::vector<step::FlatSlot> slots(8, {step::kEmptyKey, step::kNoRow, 0});
    step::FlatView const view{slots.data(), 7, 0, false};
    std::uint32_t position = 0;
    for (std::uint32_t row : {5u, 3u, 4u})
        position = step::flat_claim<step::Shared>(view, 77, row).position;
    EXPECT_EQ(slots[position].key, 77u);
    EXPECT_EQ(slots[position].row, 3u);
}

// Views share the slots. Writing to them causes errors and wrong results, but no undefined
// behaviour.
TEST(FlatIndexSlots, FilledFromOutsideMakeAGrowingTableFull) {
    Coords all = random_rows(4, 4, 0, 9, 40);
    CoordIndex index(int32_rows(all, 4));
    FlatIndex const& flat = *index.packed();
    auto* const slots = reinterpret_cast<tensorhash::step::FlatSlot*>(flat.block()->data());
    std::fill(slots, slots + flat.capacity(), tensorhash::step::FlatSlot{~std::uint64_t{0}, 7, 0});
    all.push_back({3, 100, 100, 100});
    EXPECT_THROW(index.extend(int32_rows(all, 4)), tensorhash::TableFull);
    EXPECT_EQ(flat.size(), 0u);  // and not 2^64 - 12
}

}  // namespace
