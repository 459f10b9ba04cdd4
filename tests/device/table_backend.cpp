// The device's TableBackend, verb by verb against the oracle.
// Over 400 lines: one test per verb, with a twin of the table that all share.
#include "device/table.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/lives.hpp"

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using Table = tensorhash::device::DeviceTable<TestQueue>;
using tensorhash::Reduce;

/// Random rows of a value column. The order of additions shows in the bits.
Rows draw_values(Element const& element, Random& random, std::size_t rows) {
    tensorhash::Tensor const drawn = make_finite_values(element, rows, random.next());
    Rows out{element.bytes(), rows, std::string(rows * element.bytes(), '\0')};
    std::memcpy(out.bytes.data(), drawn.data(), out.bytes.size());
    make_legal(out.bytes.data(), out.bytes.size(), element.dtype);
    return out;
}

/// A device table beside the oracle.
struct Twin {
    Element key;
    std::vector<Element> elements;
    std::uint64_t seed;
    TestQueue queue;
    Oracle oracle;
    Random random;
    std::unique_ptr<backend::TableBackend> table;

    Twin(Element const& key_element, std::vector<Element> const& values, std::uint64_t run_seed,
         std::uint64_t capacity = 16)
        : key(key_element), elements(values), seed(run_seed), queue({.seed = run_seed}),
          oracle(static_cast<std::int64_t>(capacity), key_element, values), random(run_seed),
          table(std::make_unique<Table>(
              queue, backend::TableSpec{key, elements, capacity, run_seed}, tensorhash::Device{})) {
    }

    Rows keys() { return draw_keys(key, random, 1 + random.below(200), 150); }
    std::vector<Rows> values(std::size_t rows) {
        std::vector<Rows> columns;
        for (Element const& element : elements) {
            columns.push_back(draw_values(element, random, rows));
        }
        return columns;
    }

    /// Device copies of a batch.
    struct Batch {
        OnDevice<unsigned char> keys;
        std::vector<OnDevice<unsigned char>> columns;
        std::vector<backend::Bytes> pointers;
        OnDevice<std::uint32_t> indices;
        OnDevice<unsigned char> mask;
        std::size_t rows;

        Batch(TestQueue& queue, Rows const& given, std::vector<Rows> const& values)
            : keys(queue, given.bytes.data(), given.bytes.size()), indices(queue, given.count),
              mask(queue, given.count), rows(given.count) {
            for (Rows const& column : values) {
                columns.emplace_back(queue, column.bytes.data(), column.bytes.size());
                pointers.push_back(columns.back().data());
            }
        }
        backend::KeyRows key_rows() const { return {keys.data(), rows}; }
        backend::ValueRows value_rows() const { return {pointers, nullptr}; }
        backend::Answers out() const { return {indices.data(), mask.data()}; }
        OracleLocated results() const {
            OracleLocated located;
            for (std::uint32_t const index : indices.read()) {
                located.indices.push_back(static_cast<std::int32_t>(index));
            }
            located.mask = mask.read();
            return located;
        }
    };

    void expect_same(Batch const& batch, OracleLocated const& wanted, char const* verb) const {
        OracleLocated const got = batch.results();
        ASSERT_EQ(got.mask, wanted.mask) << verb << ", seed " << seed;
        ASSERT_EQ(got.indices, wanted.indices) << verb << ", seed " << seed;
    }
    void insert() {
        Rows const given = keys();
        auto const columns = values(given.count);
        Batch const batch(queue, given, columns);
        table->insert({batch.key_rows(), batch.value_rows(), batch.out()});
        expect_same(batch, oracle.insert(given, columns), "insert");
    }
    void activate() {
        Rows const given = keys();
        Batch const batch(queue, given, {});
        table->activate({batch.key_rows(), batch.out()});
        expect_same(batch, oracle.activate(given), "activate");
    }
    void insert_or_assign() {
        Rows const given = keys();
        auto const columns = values(given.count);
        Batch const batch(queue, given, columns);
        table->insert_or_assign({batch.key_rows(), batch.value_rows(), batch.out()});
        expect_same(batch, oracle.insert_or_assign(given, columns), "insert_or_assign");
    }
    void accumulate() {
        std::vector<Reduce> reduce;
        for (std::size_t i = 0; i < elements.size(); ++i) {
            reduce.push_back(static_cast<Reduce>(random.below(6)));
        }
        Rows const given = keys();
        auto const columns = values(given.count);
        Batch const batch(queue, given, columns);
        table->accumulate({batch.key_rows(), batch.value_rows(), reduce, batch.out()});
        expect_same(batch, oracle.accumulate(given, columns, reduce), "accumulate");
    }
    void find() {
        Rows const given = keys();
        Batch const batch(queue, given, {});
        table->find(batch.key_rows(), batch.out());
        expect_same(batch, oracle.find(given), "find");
    }
    void erase() {
        Rows const given = keys();
        Batch const batch(queue, given, {});
        table->erase({batch.key_rows(), batch.mask.data()});
        ASSERT_EQ(batch.mask.read(), oracle.erase(given)) << "erase, seed " << seed;
    }
    void reserve() {
        std::uint64_t const capacity = random.below(600);
        table->reserve({capacity});
        oracle.reserve(static_cast<std::int64_t>(capacity));
    }
    void shrink_to_fit() {
        table->finish(table->prepare(backend::Shrink{}));
        oracle.shrink_to_fit();
    }
    void compact() {
        OnDevice<std::int32_t> const moved(queue, table->sizes().capacity);
        table->compact({moved.data()});
        ASSERT_EQ(moved.read(), oracle.compact()) << "compact, seed " << seed;
    }
    void replace_by_clone() { table = table->clone(); }
    void replace_by_image() {
        auto const image = table->to_cpu();
        auto copy = table->make_empty();
        copy->from_cpu(image);
        table = std::move(copy);
    }

    void expect_same_content() {
        auto const sizes = table->sizes();
        ASSERT_EQ(sizes.entries, static_cast<std::uint64_t>(oracle.size())) << "seed " << seed;
        ASSERT_EQ(sizes.capacity, static_cast<std::uint64_t>(oracle.capacity()));
        OnDevice<std::int32_t> const listed(queue, sizes.entries);
        ASSERT_EQ(table->list(0, sizes.entries, listed.data()), sizes.entries);
        ASSERT_EQ(listed.read(), oracle.active()) << "seed " << seed;
        OnDevice<char> const keys_out(queue, sizes.entries * key.bytes());
        std::vector<OnDevice<char>> columns;
        std::vector<void*> pointers;
        for (Element const& element : elements) {
            columns.emplace_back(queue, sizes.entries * element.bytes());
            pointers.push_back(columns.back().data());
        }
        table->items(keys_out.data(), pointers);
        auto const text = [](OnDevice<char> const& bytes) {
            auto const read = bytes.read();
            return std::string(read.begin(), read.end());
        };
        ASSERT_EQ(text(keys_out), oracle.keys()) << "seed " << seed;
        for (std::size_t c = 0; c < elements.size(); ++c) {
            ASSERT_EQ(text(columns[c]), oracle.column(c)) << "column " << c << ", seed " << seed;
        }
        table->validate();
    }
};

using Verb = void (Twin::*)();

struct Case {
    std::string name;
    std::vector<Verb> verbs;  // besides insert and erase
};

class DeviceTable : public testing::TestWithParam<Case> {};

TEST_P(DeviceTable, agrees_with_the_oracle) {
    std::vector<Element> const columns{
        {Dtype::Float32, {3}}, {Dtype::Int64, {}}, {Dtype::UInt8, {5}}};
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Element const& key : {Element{Dtype::Int64, {}}, Element{Dtype::Int32, {3}}}) {
            Twin twin(key, columns, seed);
            for (int i = 0; i < 5 && !HasFatalFailure(); ++i) {
                twin.insert();
                twin.erase();
                for (Verb const verb : GetParam().verbs) {
                    (twin.*verb)();
                }
                twin.expect_same_content();
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Verbs, DeviceTable,
                         testing::Values(Case{"insert_and_erase", {}}, Case{"find", {&Twin::find}},
                                         Case{"activate", {&Twin::activate}},
                                         Case{"insert_or_assign", {&Twin::insert_or_assign}},
                                         Case{"accumulate", {&Twin::accumulate, &Twin::accumulate}},
                                         Case{"reserve", {&Twin::reserve}},
                                         Case{"compact", {&Twin::compact}},
                                         Case{"shrink_to_fit", {&Twin::shrink_to_fit}},
                                         Case{"clone", {&Twin::replace_by_clone}},
                                         Case{"to_and_from_cpu", {&Twin::replace_by_image}}),
                         [](auto const& verbs) { return verbs.param.name; });

/// All reductions of all dtypes; the order of rows shows in the bits of floats.
TEST(DeviceTable, accumulates_every_dtype_like_the_oracle) {
    for (Dtype const dtype : {Dtype::Bool, Dtype::Int8, Dtype::Int16, Dtype::Int32, Dtype::Int64,
                              Dtype::UInt8, Dtype::UInt16, Dtype::UInt32, Dtype::UInt64,
                              Dtype::Float16, Dtype::BFloat16, Dtype::Float32, Dtype::Float64}) {
        for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
            Twin twin({Dtype::Int64, {}}, {{dtype, {2}}}, seed);
            for (int i = 0; i < 4 && !HasFatalFailure(); ++i) {
                twin.accumulate();
            }
            twin.expect_same_content();
        }
    }
}

TEST(DeviceTable, assign_overwrites_present_keys_and_the_last_row_wins) {
    Twin twin({Dtype::Int64, {}}, {{Dtype::Int32, {}}}, 3);
    twin.insert();
    Rows const given = twin.keys();
    auto const columns = twin.values(given.count);
    Twin::Batch const batch(twin.queue, given, columns);
    twin.table->finish(twin.table->prepare(
        tensorhash::backend::Assign{batch.key_rows(), batch.value_rows(), batch.out()}));
    twin.expect_same(batch, twin.oracle.find(given), "assign");
    // The oracle has no assign: only present rows are given to insert_or_assign.
    Rows present{given.width, 0, ""};
    Rows rows{4, 0, ""};
    auto const found = twin.oracle.find(given);
    for (std::size_t row = 0; row < given.count; ++row) {
        if (found.mask[row] != 0) {
            present.bytes += given[row];
            rows.bytes += columns[0][row];
            ++present.count;
            ++rows.count;
        }
    }
    ASSERT_GT(present.count, 0u);
    twin.oracle.insert_or_assign(present, {rows});
    twin.expect_same_content();
}

TEST(DeviceTable, a_prepared_change_that_is_cancelled_leaves_no_trace) {
    // One key for each reader.
    std::vector<Element> const elements{{Dtype::Int64, {}},  {Dtype::Int32, {}},
                                        {Dtype::UInt8, {6}}, {Dtype::Int32, {3}},
                                        {Dtype::Int32, {4}}, {Dtype::Int32, {5}}};
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Element const& key : elements) {
            Twin twin(key, {{Dtype::Int32, {}}}, seed, 400);
            for (int i = 0; i < 2 && !HasFatalFailure(); ++i) {
                twin.insert();
                twin.erase();
                Rows const given = twin.keys();
                auto const columns = twin.values(given.count);
                Twin::Batch const batch(twin.queue, given, columns);
                auto prepared = twin.table->prepare(
                    backend::Insert{batch.key_rows(), batch.value_rows(), batch.out()});
                twin.table->cancel(std::move(prepared));
                twin.find();
                twin.expect_same_content();
            }
        }
    }
}

TEST(DeviceTable, a_failed_allocation_of_any_verb_changes_nothing) {
    auto const fails_somewhere = [](std::function<void(Twin&, Twin::Batch const&)> const& change) {
        for (std::uint64_t failing = 0;; ++failing) {
            Twin twin({Dtype::Int64, {}}, {{Dtype::Float32, {2}}, {Dtype::Int32, {}}}, 5);
            twin.insert();
            twin.erase();
            Rows const given = draw_keys(twin.key, twin.random, 400, 1000);
            auto const columns = twin.values(given.count);
            Twin::Batch const batch(twin.queue, given, columns);
            std::size_t const held = twin.queue.live_allocations();
            twin.queue.failing_allocation = twin.queue.allocations + failing;
            try {
                change(twin, batch);
            } catch (std::bad_alloc const&) {
                twin.queue.failing_allocation = ~0ull;
                EXPECT_EQ(twin.queue.live_allocations(), held) << failing;
                twin.expect_same_content();
                continue;
            }
            EXPECT_GT(failing, 2u);
            return;
        }
    };
    fails_somewhere([](Twin& twin, Twin::Batch const& b) {
        twin.table->insert({b.key_rows(), b.value_rows(), b.out()});
    });
    fails_somewhere([](Twin& twin, Twin::Batch const& b) {
        twin.table->insert_or_assign({b.key_rows(), b.value_rows(), b.out()});
    });
    fails_somewhere([](Twin& twin, Twin::Batch const& b) {
        std::vector<Reduce> const reduce{Reduce::Sum};
        twin.table->accumulate({b.key_rows(), b.value_rows(), reduce, b.out()});
    });
    fails_somewhere([](Twin& twin, Twin::Batch const&) { twin.table->reserve({5000}); });
    fails_somewhere([](Twin& twin, Twin::Batch const&) {
        twin.table->finish(twin.table->prepare(backend::Shrink{}));
    });
    fails_somewhere(
        [](Twin& twin, Twin::Batch const& b) { twin.table->erase({b.key_rows(), b.mask.data()}); });
}

TEST(DeviceTable, keys_at_an_odd_address_are_copied) {
    Twin twin({Dtype::Int64, {}}, {}, 9);
    Rows const given = twin.keys();
    OnDevice<unsigned char> const shifted(twin.queue, given.bytes.size() + 1);
    twin.queue.copy(shifted.data() + 1, given.bytes.data(), given.bytes.size(),
                    tensorhash::device::Copy::In);
    Twin::Batch const batch(twin.queue, given, {});
    twin.table->insert({{shifted.data() + 1, given.count}, {}, batch.out()});
    twin.expect_same(batch, twin.oracle.insert(given, {}), "insert");
    twin.table->find({shifted.data() + 1, given.count}, batch.out());
    twin.expect_same(batch, twin.oracle.find(given), "find");
    twin.table->erase({{shifted.data() + 1, given.count}, batch.mask.data()});
    EXPECT_EQ(batch.mask.read(), twin.oracle.erase(given));
}

TEST(DeviceTable, lists_begin_and_end_where_asked) {
    Twin twin({Dtype::Int64, {}}, {}, 4);
    twin.insert();
    twin.erase();
    auto const all = twin.oracle.active();
    ASSERT_GT(all.size(), 4u);
    OnDevice<std::int32_t> const out(twin.queue, 2);
    EXPECT_EQ(twin.table->list(static_cast<std::uint64_t>(all[1]), 2, out.data()), 2u);
    EXPECT_EQ(out.read(), (std::vector<std::int32_t>{all[1], all[2]}));
    EXPECT_EQ(twin.table->list(1'000'000, 2, out.data()), 0u);
}

TEST(DeviceTable, lists_end_at_the_capacity_when_freed_indices_were_reused) {
    Twin twin({Dtype::Int64, {}}, {}, 4, 64);
    auto const insert = [&](std::int64_t begin, std::int64_t end) {
        Rows given{8, static_cast<std::size_t>(end - begin), ""};
        for (std::int64_t i = begin; i < end; ++i) {
            given.bytes.append(reinterpret_cast<char const*>(&i), 8);
        }
        Twin::Batch const batch(twin.queue, given, {});
        twin.table->insert({batch.key_rows(), {}, batch.out()});
        twin.expect_same(batch, twin.oracle.insert(given, {}), "insert");
        return given;
    };
    Rows const first = insert(0, 64);
    Twin::Batch const batch(twin.queue, first, {});
    twin.table->erase({batch.key_rows(), batch.mask.data()});
    EXPECT_EQ(batch.mask.read(), twin.oracle.erase(first));
    insert(100, 164);
    twin.expect_same_content();
}

TEST(DeviceTable, an_empty_table_is_ordinary) {
    Twin twin({Dtype::Int64, {}}, {{Dtype::Int32, {}}}, 4, 0);
    twin.expect_same_content();
    twin.replace_by_clone();
    twin.replace_by_image();
    twin.compact();
    twin.expect_same_content();
    twin.insert();
    twin.table->clear();
    twin.oracle.clear();
    twin.expect_same_content();
    twin.insert();
    twin.expect_same_content();
}

TEST(DeviceTable, views_show_the_buffers_and_keep_them) {
    Twin twin({Dtype::Int64, {}}, {{Dtype::Int32, {2}}}, 4);
    auto const keys = twin.table->key_tensor();
    auto const values = twin.table->value_tensor(0);
    EXPECT_EQ(keys.shape(), (tensorhash::Shape{16}));
    EXPECT_EQ(values.shape(), (tensorhash::Shape{16, 2}));
    EXPECT_TRUE(twin.table->overlaps(values.data(), 1));
    twin.insert();
    EXPECT_GT(twin.table->sizes().capacity, 16u);
    EXPECT_FALSE(twin.table->overlaps(values.data(), 1));
    EXPECT_EQ(static_cast<std::int32_t const*>(values.data())[31], 0);
}

TEST(DeviceTable, an_image_with_equal_keys_is_refused) {
    Twin twin({Dtype::Int64, {}}, {}, 4);
    std::vector<std::int64_t> const keys{1, 2, 1};
    backend::TableImage image;
    image.capacity = 16;
    image.top = 3;
    image.rows = 3;
    image.keys = reinterpret_cast<unsigned char const*>(keys.data());
    EXPECT_THROW(twin.table->from_cpu(image), tensorhash::CorruptTable);
    std::vector<std::uint32_t> const free{3};
    image.free = free;
    EXPECT_THROW(twin.table->from_cpu(image), tensorhash::CorruptTable);
}

TEST(DeviceTable, bools_of_an_image_become_0_or_1) {
    Twin twin({Dtype::Bool, {2}}, {{Dtype::Bool, {}}}, 4);
    std::vector<unsigned char> const keys{0, 2, 255, 0};
    std::vector<unsigned char> const values{7, 0};
    backend::TableImage image;
    image.capacity = 16;
    image.top = 2;
    image.rows = 2;
    image.keys = keys.data();
    image.values = {values.data()};
    twin.table->from_cpu(image);
    auto const got = twin.table->to_cpu();
    EXPECT_EQ(std::vector<unsigned char>(got.keys, got.keys + 4),
              (std::vector<unsigned char>{0, 1, 1, 0}));
    EXPECT_EQ(std::vector<unsigned char>(got.values[0], got.values[0] + 2),
              (std::vector<unsigned char>{1, 0}));
    // validate() finds a byte that was written behind the table's back.
    void* const key_buffer = twin.table->key_tensor().data();
    twin.queue.copy(key_buffer, keys.data(), keys.size(), tensorhash::device::Copy::In);
    EXPECT_THROW(twin.table->validate(), tensorhash::CorruptTable);
}

TEST(DeviceTable, a_step_of_the_user_is_refused_with_a_sentence) {
    Twin twin({Dtype::Int64, {}}, {{Dtype::Float32, {}}}, 4);
    tensorhash::RowStep const step = [](tensorhash::UpdateRow const&) {};
    backend::Update update{};
    update.step = &step;
    EXPECT_THROW(twin.table->update(update), tensorhash::DeviceError);
}

TEST(DeviceTable, calls_on_other_streams_wait_for_writers_and_writers_for_readers) {
    Twin twin({Dtype::Int64, {}}, {}, 4, 400);
    auto const waits_on = [&](std::uintptr_t stream, void (Twin::*verb)()) {
        twin.queue.current = stream;
        twin.queue.waits.clear();
        (twin.*verb)();
        return twin.queue.waits.size();
    };
    EXPECT_EQ(waits_on(1, &Twin::insert), 1u);  // the stream that zeroed the new memory
    EXPECT_EQ(waits_on(1, &Twin::find), 0u);
    EXPECT_EQ(waits_on(2, &Twin::find), 1u);
    EXPECT_EQ(waits_on(3, &Twin::find), 1u);
    EXPECT_EQ(waits_on(3, &Twin::erase), 3u);  // the writer and the readers of streams 1 and 2
    EXPECT_EQ(waits_on(3, &Twin::find), 0u);
    EXPECT_EQ(waits_on(1, &Twin::insert), 2u);  // the writer and the reader of stream 3
}

TEST(DeviceTable, sizes_and_lists_wait_once_for_the_same_state) {
    Twin twin({Dtype::Int64, {}}, {}, 4, 400);
    twin.insert();
    EXPECT_EQ(twin.queue.read_backs, 0u);
    static_cast<void>(twin.table->sizes());
    EXPECT_EQ(twin.queue.read_backs, 1u);
    OnDevice<std::int32_t> const out(twin.queue, 400);
    static_cast<void>(twin.table->list(0, 400, out.data()));
    static_cast<void>(twin.table->sizes());
    EXPECT_EQ(twin.queue.read_backs, 1u);
    static_cast<void>(twin.table->list(1, 400, out.data()));
    EXPECT_EQ(twin.queue.read_backs, 2u);
    twin.find();
    twin.erase();
    twin.activate();
    EXPECT_EQ(twin.queue.read_backs, 2u);
}

}  // namespace
}  // namespace th_test
