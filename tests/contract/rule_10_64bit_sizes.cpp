// Contract rule 10: byte offsets beyond 32 bits are right. A table holds at most 2^31-1 entries and
// says so.
#include <sys/mman.h>

#include <cstdio>

#include "backend/capacities.hpp"
#include "support/address_space.hpp"
#include "support/collisions.hpp"
#include "support/fixtures.hpp"
#include "table/table.hpp"
#include "tensorhash/bounded_map.hpp"

namespace th_test {
namespace {

using tensorhash::ValueError;

constexpr std::int64_t too_many = std::int64_t{1} << 31;

/// Reserves address space; a page takes memory only once it is touched.
class Sparse {
public:
    explicit Sparse(std::size_t bytes) : bytes_(bytes) {
        data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (data_ == MAP_FAILED) throw std::bad_alloc();
    }
    ~Sparse() { munmap(data_, bytes_); }
    Sparse(Sparse const&) = delete;
    Sparse& operator=(Sparse const&) = delete;
    char* data() const { return static_cast<char*>(data_); }

private:
    void* data_;
    std::size_t bytes_;
};

TEST(Rule10, rows_more_than_four_gigabytes_apart_are_read_where_they_are) {
    constexpr std::int64_t rows = 50, stride = 100ll << 20;
    Sparse memory(static_cast<std::size_t>(rows * stride));
    for (std::int64_t i = 0; i < rows; ++i) std::memcpy(memory.data() + i * stride, &i, sizeof(i));
    HashMap map = int64_map();
    Tensor keys = Tensor::borrow_strided(memory.data(), {rows, 1}, {stride, 8}, Dtype::Int64, true);
    map.insert(keys, {keys});
    Tensor backwards = Tensor::borrow_strided(memory.data() + (rows - 1) * stride, {rows, 1},
                                              {-stride, 8}, Dtype::Int64, true);
    std::vector<std::int32_t> want(rows);
    for (std::int32_t i = 0; i < rows; ++i)
        want[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(rows) - 1 - i;
    EXPECT_EQ(indices_of(map.find(backwards)), want);
    EXPECT_TRUE(same_bytes(map.keys(), keys));
    EXPECT_TRUE(same_bytes(map.items().values[0], keys));
}

/// Bytes of memory available now; 0 if unknown.
std::int64_t available_memory() {
    std::int64_t kilobytes = 0;
    std::FILE* file = std::fopen("/proc/meminfo", "r");
    if (!file) return 0;
    char line[256];
    while (std::fgets(line, sizeof(line), file)) {
        long long number = 0;
        if (std::sscanf(line, "MemAvailable: %lld kB", &number) == 1) kilobytes = number;
    }
    std::fclose(file);
    return kilobytes * 1024;
}

TEST(Rule10, growth_makes_enough_room_up_to_the_largest_table) {
    constexpr std::uint64_t most = tensorhash::table::kMaxEntries;
    for (std::uint64_t const near :
         {most, most / 2, most / 4, std::uint64_t{3} << 29, std::uint64_t{5} << 28})
        for (std::uint64_t capacity = near - 2; capacity <= std::min(near + 2, most); ++capacity)
            for (std::uint64_t const more :
                 {std::uint64_t{1}, capacity / 8, capacity, most - capacity}) {
                std::uint64_t const needed = std::min(capacity + more, most);
                std::uint64_t const grown = tensorhash::backend::grown_capacity(capacity, needed);
                ASSERT_GE(grown, needed) << capacity;
                ASSERT_LE(grown, most) << capacity;
            }
}

TEST(Rule10, a_file_may_be_longer_than_a_batch) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "too much memory under a sanitizer";
#endif
    // Untouched memory costs only addresses. The length is valid; only the content is not.
    Tensor const nothing = Tensor::empty({(1ll << 31) + 64}, Dtype::UInt8);
    EXPECT_THROW(HashMap::from_bytes(nothing), tensorhash::FormatError);
    EXPECT_THROW(tensorhash::BoundedHashMap::from_bytes(nothing), tensorhash::FormatError);
    EXPECT_THROW(HashMap::from_bytes(Tensor::zeros({8}, Dtype::Int8)), tensorhash::TypeError);
}

TEST(Rule10, values_of_more_than_two_gigabytes_are_addressed_correctly) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "too much memory under a sanitizer";
#endif
    if (available_memory() < (6ll << 30)) GTEST_SKIP() << "needs 6 GB of free memory";
    constexpr std::int64_t rows = 2200, width = 1 << 20, last = rows - 1;
    HashMap map = make_map(Capacity{rows}, {Dtype::Int64, {}}, {{Dtype::UInt8, {width}}});
    std::vector<std::int64_t> keys(rows - 4);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int64_t>(i);
    map.activate(Tensor::from(keys));
    // The last four rows have values: one byte each, broadcast over the row.
    std::uint8_t tags[] = {11, 12, 13, 14};
    map.insert(Tensor::from(std::vector<std::int64_t>{last - 3, last - 2, last - 1, last}),
               {Tensor::borrow_strided(tags, {4, width}, {1, 0}, Dtype::UInt8, true)});
    Tensor view = map.value_tensor();
    auto* bytes = static_cast<std::uint8_t*>(view.data());
    EXPECT_GT(view.bytes(), std::size_t{1} << 31);
    for (std::int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(bytes[(last - 3 + i) * width], tags[i]);
        EXPECT_EQ(bytes[(last - 3 + i) * width + width - 1], tags[i]);
    }
    // Rows that a 32-bit offset could hit instead.
    for (std::int64_t i : {0, 103, 151}) EXPECT_EQ(bytes[i * width], 0);
    Tensor got = map.get(Tensor::from(std::vector<std::int64_t>{last - 1}))[0];
    EXPECT_EQ(got.as<std::uint8_t>()[width - 1], 13);
    map.erase(Tensor::from(std::vector<std::int64_t>{last}));
    map.activate(Tensor::from(std::vector<std::int64_t>{5000}));
    EXPECT_EQ(bytes[last * width], 0);
}

TEST(Rule10, a_table_beyond_the_limit_says_so) {
    Element key{Dtype::Int64, {1}};
    std::string text = message_of<ValueError>([&] { make_map(Capacity{too_many}, key, {}); });
    EXPECT_NE(text.find("2147483647"), std::string::npos) << text;
    HashMap map = int64_map();
    text = message_of<ValueError>([&] { map.reserve(Capacity{too_many}); });
    EXPECT_NE(text.find("2147483647"), std::string::npos) << text;
    EXPECT_THROW(map.reserve(Capacity{INT64_MAX}), ValueError);
    EXPECT_THROW(make_map(Capacity{INT64_MAX}, key, {}), ValueError);
}

TEST(Rule10, a_batch_beyond_the_limit_says_so_before_it_is_read) {
    std::int64_t one = 1;
    Tensor keys = Tensor::borrow_strided(&one, {too_many, 1}, {0, 8}, Dtype::Int64, true);
    HashMap map = int64_map(4);
    EXPECT_THROW(map.insert(keys, {keys}), ValueError);
    EXPECT_THROW(map.activate(keys), ValueError);
    EXPECT_THROW(map.insert_or_assign(keys, {keys}), ValueError);
    EXPECT_THROW(map.accumulate(keys, {keys}, {Reduce::Sum}), ValueError);
    EXPECT_THROW(map.find(keys), ValueError);
    EXPECT_THROW(map.contains(keys), ValueError);
    EXPECT_THROW(map.erase(keys), ValueError);
    EXPECT_THROW(map.get(keys), ValueError);
    EXPECT_EQ(map.capacity(), 4);
}

TEST(Rule10, shapes_whose_product_overflows_are_refused) {
    EXPECT_THROW(tensorhash::num_elements({1ll << 32, 1ll << 32}), ValueError);
    EXPECT_THROW(tensorhash::num_elements({INT64_MAX, 2}), ValueError);
    EXPECT_EQ(tensorhash::num_elements({1ll << 32, 1ll << 30}), 1ll << 62);
    EXPECT_EQ(tensorhash::num_elements({1ll << 40, 0}), 0);
    EXPECT_THROW(make_map(Capacity{1}, {Dtype::Int64, {1ll << 40, 1ll << 40}}, {}), ValueError);
    EXPECT_THROW(make_map(Capacity{1}, {Dtype::Int64, {1ll << 61}}, {}), ValueError)
        << "2^64 bytes must not wrap to 0";
    EXPECT_THROW(make_map(Capacity{0}, {Dtype::Int64, {1}}, {{Dtype::Int64, {1ll << 61}}}),
                 ValueError);
    EXPECT_ANY_THROW(
        make_map(Capacity{1ll << 20}, {Dtype::Int64, {1}}, {{Dtype::Int64, {1ll << 44}}}));
}

TEST(Rule10, an_impossible_allocation_is_bad_alloc_and_changes_nothing) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "sanitizers stop at huge allocations";
#endif
    // 2^22 rows of 2^26 bytes exceed the address space; their keys and index are small.
    HashMap map = make_map(Capacity{1}, {Dtype::Int64, {}}, {{Dtype::Int64, {1 << 23}}});
    map.activate(Tensor::from(std::vector<std::int64_t>{1}));
    std::string before = bytes_of(map.to_bytes());
    EXPECT_THROW(map.reserve(Capacity{1 << 22}), std::bad_alloc);
    EXPECT_EQ(map.capacity(), 1);
    EXPECT_TRUE(same_bytes(map.to_bytes(), before));
    map.activate(Tensor::from(std::vector<std::int64_t>{2}));
    map.validate();
}

TEST(Rule10, failed_growth_undoes_the_batch) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "sanitizers need address space of their own";
#endif
    // The last two keys mix to the marks of an empty and an erased slot. Values of 2^30 bytes
    // exceed the limit below.
    for (std::int64_t width : {1, 2}) {
        HashMap map = make_map(Capacity{0}, {Dtype::UInt64, {width}}, {{Dtype::UInt8, {1 << 30}}});
        std::vector<std::uint64_t> numbers = {
            5, 6, 5, 6, step::unmix(0, test_secret), step::unmix(1, test_secret)};
        Tensor keys = Tensor::from(numbers, {6 / width, width});
        auto rows = static_cast<std::size_t>(6 / width);
        std::string before = bytes_of(map.to_bytes());
        {
            AddressSpaceLimit limit(std::size_t{1} << 29);
            EXPECT_THROW(map.activate(keys), std::bad_alloc);
        }
        EXPECT_EQ(map.size(), 0);
        EXPECT_EQ(map.capacity(), 0);
        EXPECT_TRUE(same_bytes(map.to_bytes(), before));
        EXPECT_EQ(indices_of(map.find(keys)), std::vector<std::int32_t>(rows, -1));
        map.validate();
    }
}

}  // namespace
}  // namespace th_test
