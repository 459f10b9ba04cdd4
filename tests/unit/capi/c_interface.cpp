// The C interface: the same table behind status codes and pointers. Every operation is checked
// against the oracle; every error is a code with a message; no exception escapes.
#include "tensorhash/c.h"

#include <unistd.h>

#include <filesystem>
#include <thread>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

/// A map with int32 x 3 keys, a float64 column and an int64 x 2 column, used through C calls only.
class CMap {
public:
    explicit CMap(std::int64_t capacity = 0) {
        static std::int64_t const three[] = {3}, two[] = {2};
        th_element key{4, 1, three};
        th_element values[] = {{13, 0, nullptr}, {5, 1, two}};
        EXPECT_EQ(th_map_create(capacity, key, values, 2, &map), TH_OK) << th_last_error();
    }
    ~CMap() { th_map_destroy(map); }
    CMap(CMap const&) = delete;
    CMap& operator=(CMap const&) = delete;

    static Element key() { return {Dtype::Int32, {3}}; }
    static std::vector<Element> columns() { return {{Dtype::Float64, {}}, {Dtype::Int64, {2}}}; }

    th_map* map = nullptr;
};

struct Outputs {
    explicit Outputs(std::size_t rows) : indices(rows, -7), mask(rows, 9) {}
    std::vector<std::int32_t> indices;
    std::vector<std::uint8_t> mask;
};

void expect_same(Outputs const& got, OracleLocated const& want) {
    EXPECT_EQ(got.indices, want.indices);
    EXPECT_EQ(got.mask, want.mask);
}

TEST(CInterface, the_versions_agree) {
    EXPECT_EQ(th_abi_version(), TH_ABI_VERSION);
    EXPECT_STREQ(th_version(), TENSORHASH_VERSION);
}

/// Compares size, capacity and all items with the oracle's.
void expect_same_content(CMap const& c, Oracle const& oracle) {
    std::int64_t size = -1, capacity = -1, listed = -1;
    EXPECT_EQ(th_map_size(c.map, &size), TH_OK);
    EXPECT_EQ(th_map_capacity(c.map, &capacity), TH_OK);
    EXPECT_EQ(size, oracle.size());
    EXPECT_EQ(capacity, oracle.capacity());
    auto rows = static_cast<std::size_t>(size);
    std::string keys(rows * 12, '?'), first(rows * 8, '?'), second(rows * 16, '?');
    void* columns[] = {first.data(), second.data()};
    EXPECT_EQ(th_map_items(c.map, size, keys.data(), columns, &listed), TH_OK);
    EXPECT_EQ(listed, size);
    EXPECT_TRUE(same_bytes(keys, oracle.keys()));
    EXPECT_TRUE(same_bytes(first, oracle.column(0)));
    EXPECT_TRUE(same_bytes(second, oracle.column(1)));
    EXPECT_EQ(th_map_items(c.map, size - 1, keys.data(), columns, &listed), TH_VALUE_ERROR);
}

TEST(CInterface, every_operation_does_what_the_oracle_does) {
    CMap c;
    Oracle oracle(0, CMap::key(), CMap::columns());
    for (std::uint64_t round = 0; round < 4; ++round) {
        Ids ids = random_ids(500, 400, round);
        Tensor keys = make_keys(CMap::key(), ids);
        std::vector<Tensor> columns;
        for (Element const& element : CMap::columns())
            columns.push_back(make_finite_values(element, ids.size(), round));
        void const* values[] = {columns[0].data(), columns[1].data()};
        Rows rows = rows_of(keys, CMap::key());
        std::vector<Rows> value_rows = rows_of(columns, CMap::columns());
        Outputs answer(500);
        if (round % 2 == 0) {
            EXPECT_EQ(th_map_insert(c.map, keys.data(), 500, values, answer.indices.data(),
                                    answer.mask.data()),
                      TH_OK);
            expect_same(answer, oracle.insert(rows, value_rows));
        } else {
            th_reduce how[] = {TH_SUM, TH_MAX};
            EXPECT_EQ(th_map_accumulate(c.map, keys.data(), 500, values, how, answer.indices.data(),
                                        answer.mask.data()),
                      TH_OK);
            expect_same(answer, oracle.accumulate(rows, value_rows, {Reduce::Sum, Reduce::Max}));
        }
        EXPECT_EQ(th_map_find(c.map, keys.data(), 500, answer.indices.data(), answer.mask.data()),
                  TH_OK);
        expect_same(answer, oracle.find(rows));
        Rows gone = rows_of(make_keys(CMap::key(), random_ids(200, 400, 90 + round)), CMap::key());
        EXPECT_EQ(th_map_erase(c.map, gone.bytes.data(), 200, answer.mask.data()), TH_OK);
        EXPECT_EQ(std::vector<std::uint8_t>(answer.mask.begin(), answer.mask.begin() + 200),
                  oracle.erase(gone));
        Rows fresh = rows_of(make_keys(CMap::key(), sequence(50, 5000 + 30 * round)), CMap::key());
        Outputs added(50);
        EXPECT_EQ(
            th_map_activate(c.map, fresh.bytes.data(), 50, added.indices.data(), added.mask.data()),
            TH_OK);
        expect_same(added, oracle.activate(fresh));
        EXPECT_EQ(th_map_validate(c.map), TH_OK);
    }
    expect_same_content(c, oracle);
}

TEST(CInterface, reductions_have_the_numbers_of_the_header) {
    th_element const columns[] = {
        {5, 0, nullptr}, {1, 0, nullptr}, {1, 0, nullptr}, {4, 0, nullptr}};
    th_map* map = nullptr;
    ASSERT_EQ(th_map_create(0, {5, 0, nullptr}, columns, 4, &map), TH_OK) << th_last_error();
    std::int64_t const keys[] = {7, 8, 7};
    std::int64_t const factors[] = {3, 5, 4};
    bool const bits[] = {false, true, true};
    std::int32_t const ignored[] = {90, 91, 92};
    void const* values[] = {factors, bits, bits, ignored};
    th_reduce const how[] = {TH_PROD, TH_ANY, TH_ALL, TH_COUNT};
    Outputs answer(3);
    EXPECT_EQ(
        th_map_accumulate(map, keys, 3, values, how, answer.indices.data(), answer.mask.data()),
        TH_OK)
        << th_last_error();
    std::int64_t products[2];
    bool any[2], all[2];
    std::int32_t counts[2];
    EXPECT_EQ(th_map_get(map, keys, 2, 0, nullptr, 0, products, nullptr), TH_OK);
    EXPECT_EQ(th_map_get(map, keys, 2, 1, nullptr, 0, any, nullptr), TH_OK);
    EXPECT_EQ(th_map_get(map, keys, 2, 2, nullptr, 0, all, nullptr), TH_OK);
    EXPECT_EQ(th_map_get(map, keys, 2, 3, nullptr, 0, counts, nullptr), TH_OK);
    EXPECT_EQ(std::vector<std::int64_t>(products, products + 2),
              (std::vector<std::int64_t>{12, 5}));
    EXPECT_TRUE(any[0] && any[1] && !all[0] && all[1]);
    EXPECT_EQ(std::vector<std::int32_t>(counts, counts + 2), (std::vector<std::int32_t>{2, 1}));
    th_map_destroy(map);
}

TEST(CInterface, get_gives_values_or_defaults) {
    CMap c;
    std::int32_t keys[] = {1, 2, 3, 4, 5, 6};
    double first[] = {0.5, 1.5};
    std::int64_t second[] = {10, 11, 20, 21};
    void const* values[] = {first, second};
    Outputs answer(2);
    ASSERT_EQ(th_map_insert(c.map, keys, 2, values, answer.indices.data(), answer.mask.data()),
              TH_OK);
    std::int32_t asked[] = {4, 5, 6, 9, 9, 9, 1, 2, 3};
    double got[3];
    EXPECT_EQ(th_map_get(c.map, asked, 3, 0, nullptr, 0, got, nullptr), TH_OK);
    EXPECT_EQ(std::vector<double>(got, got + 3), (std::vector<double>{1.5, 0, 0.5}));
    std::int64_t missing[] = {-1, -2}, pairs[6];
    EXPECT_EQ(th_map_get(c.map, asked, 3, 1, missing, 0, pairs, nullptr), TH_OK);
    EXPECT_EQ(std::vector<std::int64_t>(pairs, pairs + 6),
              (std::vector<std::int64_t>{20, 21, -1, -2, 10, 11}));
    double each[] = {7, 8, 9};
    EXPECT_EQ(th_map_get(c.map, asked, 3, 0, each, 1, got, nullptr), TH_OK);
    EXPECT_EQ(std::vector<double>(got, got + 3), (std::vector<double>{1.5, 8, 0.5}));
    EXPECT_EQ(th_map_get(c.map, asked, 3, 2, nullptr, 0, got, nullptr), TH_INDEX_ERROR);
    EXPECT_EQ(th_map_get(c.map, asked, 3, -1, nullptr, 0, got, nullptr), TH_INDEX_ERROR);
}

/// One batch of steps through the C interface, and its weights.
std::vector<float> c_steps(th_optimizer const& optimizer, std::vector<Element> const& columns) {
    std::vector<th_element> values;
    for (Element const& one : columns)
        values.push_back({static_cast<std::int32_t>(one.dtype),
                          static_cast<std::int32_t>(one.shape.size()), one.shape.data()});
    th_map* map = nullptr;
    EXPECT_EQ(th_map_create(0, {static_cast<std::int32_t>(Dtype::Int64), 0, nullptr}, values.data(),
                            static_cast<std::int32_t>(values.size()), &map),
              TH_OK);
    std::int64_t const keys[] = {7, 8, 7};
    float const gradients[] = {1, 2, -3, 4, 5, 6};
    EXPECT_EQ(th_map_update(map, keys, 3, gradients, &optimizer, TH_INSERT, TH_IN_ORDER, nullptr),
              TH_OK)
        << th_last_error();
    std::vector<float> weights(4);
    EXPECT_EQ(th_map_get(map, keys, 2, 0, nullptr, 0, weights.data(), nullptr), TH_OK);
    th_map_destroy(map);
    return weights;
}

TEST(CInterface, optimizers_step_as_in_cpp) {
    using namespace tensorhash;
    std::pair<th_optimizer, Optimizer> const pairs[] = {
        {{TH_SGD, 0.1, 0.01, 0.9, 1, 0, 0, 0, 0, 0}, Sgd{0.1, 0.9, 0.01, true}},
        {{TH_ADAGRAD, 0.1, 0.01, 0, 0, 0.5, 1e-6, 0, 0, 0}, Adagrad{0.1, 0.01, 0.5, 1e-6}},
        {{TH_ADAM, 0.1, 0.01, 0, 0, 0, 1e-6, 0.8, 0.9, 1}, Adam{0.1, 0.8, 0.9, 1e-6, 0.01, true}},
        {{TH_ROW_WISE_ADAGRAD, 0.1, 0.01, 0, 0, 0.5, 1e-6, 0, 0, 0},
         RowWiseAdagrad{0.1, 0.01, 0.5, 1e-6}},
    };
    for (auto const& [c, cpp] : pairs) {
        std::vector<Element> const columns = optimizer_columns(cpp, {Dtype::Float32, {2}});
        HashMap map = make_map(Capacity{0}, {Dtype::Int64, {}}, columns);
        Tensor const gradients = Tensor::from(std::vector<float>{1, 2, -3, 4, 5, 6}, {3, 2});
        map.update(Tensor::from(std::vector<std::int64_t>{7, 8, 7}), gradients, cpp,
                   {.missing = Missing::Insert});
        Tensor const want = map.get(Tensor::from(std::vector<std::int64_t>{7, 8}))[0];
        auto const span = want.as<float>();
        EXPECT_EQ(c_steps(c, columns), std::vector<float>(span.begin(), span.end())) << c.kind;
    }
}

TEST(CInterface, no_rows_and_no_columns_are_ordinary) {
    CMap c;
    EXPECT_EQ(th_map_insert(c.map, nullptr, 0, nullptr, nullptr, nullptr), TH_OK)
        << th_last_error();
    EXPECT_EQ(th_map_find(c.map, nullptr, 0, nullptr, nullptr), TH_OK) << th_last_error();
    EXPECT_EQ(th_map_erase(c.map, nullptr, 0, nullptr), TH_OK) << th_last_error();
    th_map* set = nullptr;
    ASSERT_EQ(th_map_create(0, {5, 0, nullptr}, nullptr, 0, &set), TH_OK) << th_last_error();
    std::int64_t keys[] = {4, 4, 5};
    Outputs answer(3);
    EXPECT_EQ(th_map_insert(set, keys, 3, nullptr, answer.indices.data(), answer.mask.data()),
              TH_OK);
    EXPECT_EQ(answer.indices, (std::vector<std::int32_t>{0, 0, 1}));
    EXPECT_EQ(th_map_clear(set), TH_OK);
    EXPECT_EQ(th_map_reserve(set, 100), TH_OK);
    std::int64_t capacity = 0;
    EXPECT_EQ(th_map_capacity(set, &capacity), TH_OK);
    EXPECT_EQ(capacity, 100);
    EXPECT_EQ(th_map_shrink_to_fit(set), TH_OK);
    EXPECT_EQ(th_map_capacity(set, &capacity), TH_OK);
    EXPECT_EQ(capacity, 0);
    EXPECT_EQ(th_map_shrink_to_fit(nullptr), TH_VALUE_ERROR);
    th_map_destroy(set);
    th_map_destroy(nullptr);
}

TEST(CInterface, errors_are_codes_with_a_sentence) {
    th_map* map = nullptr;
    EXPECT_EQ(th_map_create(-1, {5, 0, nullptr}, nullptr, 0, &map), TH_VALUE_ERROR);
    EXPECT_NE(std::string(th_last_error()).find("-1"), std::string::npos) << th_last_error();
    EXPECT_EQ(th_map_create(0, {10, 0, nullptr}, nullptr, 0, &map), TH_TYPE_ERROR);
    EXPECT_NE(th_map_create(0, {99, 0, nullptr}, nullptr, 0, &map), TH_OK);
    EXPECT_NE(th_map_create(0, {-1, 0, nullptr}, nullptr, 0, &map), TH_OK);
    EXPECT_NE(th_map_create(0, {5, -1, nullptr}, nullptr, 0, &map), TH_OK);
    EXPECT_EQ(map, nullptr);
    CMap c;
    std::int32_t keys[] = {1, 2, 3};
    Outputs answer(1);
    EXPECT_EQ(th_map_find(c.map, keys, -1, answer.indices.data(), answer.mask.data()),
              TH_VALUE_ERROR);
    EXPECT_EQ(th_map_reserve(c.map, -5), TH_VALUE_ERROR);
    double first = 1;
    std::int64_t second[] = {1, 2};
    void const* values[] = {&first, second};
    th_reduce wrong[] = {TH_SUM, static_cast<th_reduce>(9)};
    EXPECT_EQ(
        th_map_accumulate(c.map, keys, 1, values, wrong, answer.indices.data(), answer.mask.data()),
        TH_VALUE_ERROR);
    std::int64_t size = -1;
    EXPECT_EQ(th_map_size(c.map, &size), TH_OK);
    EXPECT_EQ(size, 0);
}

TEST(CInterface, the_last_error_is_each_threads_own) {
    th_map* map = nullptr;
    EXPECT_EQ(th_map_create(-1, {5, 0, nullptr}, nullptr, 0, &map), TH_VALUE_ERROR);
    std::string elsewhere = "x";
    std::thread([&] { elsewhere = th_last_error(); }).join();
    EXPECT_EQ(elsewhere, "");
    EXPECT_STRNE(th_last_error(), "");
}

TEST(CInterface, save_and_load) {
    std::string name =
        std::filesystem::temp_directory_path() / ("tensorhash-c-" + std::to_string(getpid()));
    CMap c(9);
    std::int32_t keys[] = {1, 2, 3};
    Outputs answer(1);
    ASSERT_EQ(th_map_activate(c.map, keys, 1, answer.indices.data(), answer.mask.data()), TH_OK);
    ASSERT_EQ(th_map_save(c.map, name.c_str()), TH_OK) << th_last_error();
    th_map* loaded = nullptr;
    ASSERT_EQ(th_map_load(name.c_str(), &loaded), TH_OK) << th_last_error();
    std::int64_t capacity = 0;
    EXPECT_EQ(th_map_capacity(loaded, &capacity), TH_OK);
    EXPECT_EQ(capacity, 9);
    EXPECT_EQ(th_map_find(loaded, keys, 1, answer.indices.data(), answer.mask.data()), TH_OK);
    EXPECT_EQ(answer.indices[0], 0);
    th_map_destroy(loaded);
    std::filesystem::resize_file(name, 20);
    EXPECT_EQ(th_map_load(name.c_str(), &loaded), TH_FORMAT_ERROR);
    std::filesystem::remove(name);
    EXPECT_EQ(th_map_load(name.c_str(), &loaded), TH_SYSTEM_ERROR);
}

}  // namespace
}  // namespace th_test
