// Bounded tables over shards against one row-by-row oracle per shard: which entries leave, in which
// order, and all or nothing.
#include "io/bounded_format.hpp"
#include "support/address_space.hpp"
#include "support/bounded_oracle.hpp"
#include "support/sharded_twin.hpp"

namespace th_test {
namespace {

using tensorhash::Admitted;
using tensorhash::Bound;
using tensorhash::ValueError;

Element const int_key{Dtype::Int64, {}};
Element const value_of_three{Dtype::Float32, {3}};

Tensor int64s(Ids const& ids) {
    return Tensor::from(std::vector<std::int64_t>(ids.begin(), ids.end()));
}

/// A table, and one oracle per shard that shares the table's clock. Every row goes, alone, to the
/// oracle of its shard.
class BoundedTwin {
public:
    BoundedTwin(std::size_t capacity, Eviction how, int shards, std::string const& policy)
        : table(Bound{Capacity{static_cast<std::int64_t>(capacity)}, how}, int_key,
                {value_of_three}, cpus(shards), tensorhash::policy_from_name(policy)),
          eviction_(how) {
        auto const count = static_cast<std::size_t>(shards);
        for (std::size_t i = 0; i < count; ++i)
            oracles.emplace_back(capacity / count + (i < capacity % count), how, value_of_three);
    }

    void accumulate(Ids const& ids, Reduce how, std::uint64_t seed) {
        Tensor const keys = int64s(ids);
        Tensor const values = make_finite_values(value_of_three, ids.size(), seed);
        auto const scores = make_scores(ids.size(), seed + 1);
        Admitted const got = table.accumulate(keys, {values}, {how}, to_tensor(scores));

        auto const shard = to_vector<std::int32_t>(table.shard_of(keys));
        Rows const rows = rows_of(values, value_of_three);
        ++clock_;
        std::vector<std::uint8_t> mask;
        BoundedOracle::Gone gone;
        for (std::size_t row = 0; row < ids.size(); ++row) {
            BoundedOracle& oracle = oracles[static_cast<std::size_t>(shard[row])];
            oracle.clock = clock_ - 1;
            auto const one =
                oracle.accumulate({ids[row]}, one_row(rows, row), how, one_score(scores, row));
            mask.push_back(one.mask[0]);
            gone.keys.insert(gone.keys.end(), one.gone.keys.begin(), one.gone.keys.end());
            gone.values += one.gone.values;
            gone.scores.insert(gone.scores.end(), one.gone.scores.begin(), one.gone.scores.end());
        }
        std::vector<std::int64_t> indices;
        for (std::size_t row = 0; row < ids.size(); ++row) {
            auto const local = oracles[static_cast<std::size_t>(shard[row])].index_of(ids[row]);
            indices.push_back(local < 0 ? -1 : tensorhash::global_index(shard[row], local));
        }
        require_equal(mask_of(got.mask), mask, "mask");
        require_equal(to_vector<std::int64_t>(got.indices), indices, "indices");
        require_equal(bytes_of(got.evicted.keys), bytes_of(int64s(gone.keys)), 8, "evicted keys");
        require_equal(bytes_of(got.evicted.values[0]), gone.values, value_of_three.bytes(),
                      "evicted values");
        require_equal(to_vector<std::int64_t>(got.evicted.scores), gone.scores, "evicted scores");
    }
    void touch(Ids const& ids, std::uint64_t seed, bool with_scores) {
        Tensor const keys = int64s(ids);
        auto const scores =
            with_scores ? make_scores(ids.size(), seed) : std::vector<std::int64_t>{};
        Tensor const plain = table.get(keys)[0];
        Tensor const got =
            table.get_and_touch(keys, {}, with_scores ? to_tensor(scores) : Tensor{})[0];
        EXPECT_TRUE(same_bytes(got, plain));
        auto const shard = to_vector<std::int32_t>(table.shard_of(keys));
        ++clock_;
        for (std::size_t row = 0; row < ids.size(); ++row) {
            BoundedOracle& oracle = oracles[static_cast<std::size_t>(shard[row])];
            oracle.clock = clock_ - 1;
            oracle.touch({ids[row]}, one_score(scores, row));
        }
    }
    void erase(Ids const& ids) {
        Tensor const keys = int64s(ids);
        auto const shard = to_vector<std::int32_t>(table.shard_of(keys));
        ++clock_;
        std::vector<std::uint8_t> mask;
        for (std::size_t row = 0; row < ids.size(); ++row)
            mask.push_back(oracles[static_cast<std::size_t>(shard[row])].erase({ids[row]})[0]);
        require_equal(mask_of(table.erase(keys)), mask, "erase");
    }
    void check() const {
        table.validate();
        require_equal(static_cast<std::int64_t>(table.clock()), static_cast<std::int64_t>(clock_),
                      "clock");
        Ids keys;
        std::vector<std::int64_t> indices;
        std::vector<std::int64_t> scores;
        std::string values;
        for (std::size_t s = 0; s < oracles.size(); ++s) {
            for (auto const& [index, key] : oracles[s].listed()) {
                keys.push_back(key);
                indices.push_back(tensorhash::global_index(static_cast<std::int64_t>(s), index));
                scores.push_back(oracles[s].entries.at(key).score);
                values += oracles[s].entries.at(key).value;
            }
        }
        require_equal(to_vector<std::int64_t>(table.active_buf_indices()), indices, "indices");
        require_equal(bytes_of(table.keys()), bytes_of(int64s(keys)), 8, "keys");
        require_equal(bytes_of(table.items().values[0]), values, value_of_three.bytes(), "values");
        require_equal(to_vector<std::int64_t>(table.scores()), scores, "scores");
        EXPECT_LE(table.size(), table.capacity());
    }

    ShardedHashMap table;
    std::vector<BoundedOracle> oracles;

private:
    std::vector<std::int64_t> make_scores(std::size_t rows, std::uint64_t seed) const {
        std::vector<std::int64_t> scores;
        if (eviction_ == Eviction::Score)
            for (std::uint64_t id : random_ids(rows, 50, seed))
                scores.push_back(static_cast<std::int64_t>(id) - 25);
        return scores;
    }
    static std::vector<std::int64_t> one_score(std::vector<std::int64_t> const& scores,
                                               std::size_t row) {
        return scores.empty() ? scores : std::vector<std::int64_t>{scores[row]};
    }
    Tensor to_tensor(std::vector<std::int64_t> const& scores) const {
        return eviction_ == Eviction::Score ? Tensor::from(scores) : Tensor{};
    }

    Eviction eviction_;
    std::uint64_t clock_ = 0;
};

class ShardedBounded : public EachEviction {};
INSTANTIATE_TEST_SUITE_P(Evictions, ShardedBounded, ::testing::ValuesIn(EachEviction::all()),
                         EachEviction::name);

TEST_P(ShardedBounded, random_programs_agree_with_an_oracle_for_each_shard) {
    constexpr Reduce hows[] = {Reduce::First, Reduce::Last, Reduce::Sum, Reduce::Max};
    struct Case {
        std::size_t capacity;
        int shards;
        char const* policy;
    };
    for (Case const& test :
         {Case{3, 3, "mod"}, Case{8, 3, "hash"}, Case{7, 1, "hash"}, Case{61, 4, "hash"}}) {
        BoundedTwin twin(test.capacity, eviction(), test.shards, test.policy);
        Random random(test.capacity);
        for (std::uint64_t round = 0; round < 100; ++round) {
            Ids const ids =
                random_ids(random.below(3 * test.capacity + 5), 2 * test.capacity + 3, round);
            std::uint64_t const what = random.below(10);
            if (what < 6)
                twin.accumulate(ids, hows[random.below(4)], round);
            else if (what < 8)
                twin.touch(ids, round, eviction() == Eviction::Score && random.one_in(2));
            else if (what < 9)
                twin.erase(ids);
            else
                twin.table = ShardedHashMap::from_bytes(twin.table.to_bytes());
            if (round % 5 == 0) twin.check();
        }
        twin.check();
    }
}

TEST_P(ShardedBounded, batches_of_many_rows_agree_with_an_oracle_for_each_shard) {
    BoundedTwin twin(600, eviction(), 3, "hash");
    for (std::uint64_t seed = 0; seed < 3; ++seed)
        twin.accumulate(random_ids(9000, 1500, seed), Reduce::Sum, seed);
    twin.check();
}

TEST(ShardedBounds, the_shares_are_even_and_sum_to_the_bound) {
    ShardedHashMap map(Bound{Capacity{11}}, int_key, {}, cpus(4), tensorhash::mod_policy());
    EXPECT_EQ(map.capacity(), 11);
    for (std::size_t shard = 0; shard < 4; ++shard)
        EXPECT_EQ(map.capacity(shard), shard < 3 ? 3 : 2);
    auto const out = map.insert(Tensor::from(std::vector<std::int64_t>{3, 7, 11, 15, 0}), {}, {});
    EXPECT_EQ(to_vector<std::int64_t>(out.evicted.keys), (std::vector<std::int64_t>{3, 7}));
    EXPECT_EQ(map.size(), 3);
    EXPECT_EQ(
        message_of<ValueError>([] { ShardedHashMap(Bound{Capacity{3}}, int_key, {}, cpus(4)); }),
        "max_capacity: expected 4 to 8589934588 entries, at least one per shard, got 3");
}

TEST(ShardedBounds, calls_that_a_bounded_table_lacks_are_refused_and_change_nothing) {
    ShardedHashMap map(Bound{Capacity{10}}, int_key, {int_key}, cpus(2));
    Tensor const keys = Tensor::from(std::vector<std::int64_t>{1, 2, 3});
    map.insert(keys, {keys}, {});
    std::string const before = bytes_of(map.to_bytes());
    EXPECT_EQ(message_of<ValueError>([&] { map.insert(keys, {keys}); }),
              "insert: not available on a bounded table; the verbs that take scores (an empty "
              "Tensor if the table evicts by last use) return what they evict");
    EXPECT_THROW(map.insert_or_assign(keys, {keys}), ValueError);
    EXPECT_THROW(map.accumulate(keys, {keys}, {Reduce::Sum}), ValueError);
    EXPECT_THROW(map.activate(keys), ValueError);
    EXPECT_THROW(map.assign(keys, {keys}), ValueError);
    EXPECT_THROW(map.insert_into(0, keys, {keys}), ValueError);
    EXPECT_THROW(map.update(keys, [](std::size_t, void* const*) {}), ValueError);
    EXPECT_THROW(map.reserve(Capacity{11}), ValueError);
    EXPECT_THROW(map.insert(keys, {keys}, keys), ValueError);
    Tensor const image = map.to_bytes();
    EXPECT_THROW(ShardedHashMap::from_bytes(image, cpus(3)), ValueError);
    EXPECT_THROW(ShardedHashMap::from_bytes(image, {}, tensorhash::mod_policy()), ValueError);
    EXPECT_TRUE(same_bytes(bytes_of(map.to_bytes()), before));

    ShardedHashMap plain(Capacity{10}, int_key, {int_key}, cpus(2));
    EXPECT_THROW(plain.insert(keys, {keys}, {}), ValueError);
    EXPECT_THROW(plain.insert_or_assign(keys, {keys}, {}), ValueError);
    EXPECT_THROW(plain.accumulate(keys, {keys}, {Reduce::Sum}, {}), ValueError);
    EXPECT_THROW(plain.activate(keys, {}), ValueError);
    EXPECT_THROW(plain.scores(), ValueError);
    EXPECT_FALSE(plain.bound());
}

/// One shard as ShardedHashMap holds it: a table with the two hidden columns, and its ledger.
struct Shard {
    explicit Shard(std::uint64_t capacity)
        : elements(tensorhash::table::with_hidden({int_key})), table(int_key, elements, capacity),
          ledger(Eviction::Lru) {}

    /// Inserts keys with equal values and returns the evicted keys, or cancels and returns nothing.
    std::vector<std::int64_t> insert(std::vector<std::int64_t> const& ids, bool cancel) {
        namespace t = tensorhash::table;
        t::BoundedState const state{table, ledger};
        t::UsedRows const used(ledger, ids.size(), nullptr);
        auto const* const rows = reinterpret_cast<unsigned char const*>(ids.data());
        std::vector<t::Bytes> const values{rows, used.scores(), used.uses()};
        std::vector<Reduce> const reduce{Reduce::First, Reduce::Last, Reduce::Last};
        t::BoundedBatch const batch{int_key, elements, rows, ids.size(), values, reduce, used};
        std::vector<std::uint32_t> buf_indices(ids.size());
        std::vector<unsigned char> mask(ids.size());
        t::Answers const out{buf_indices.data(), mask.data()};
        t::BoundedInsertion insertion = t::prepare_insert(state, batch, out);
        if (cancel) {
            t::cancel(state, insertion);
            return {};
        }
        auto evicted = t::make_evicted(int_key, elements, insertion.leaving());
        t::finish_insert(state, batch, std::move(insertion), out, evicted);
        ledger.end_batch(ids.size());
        return to_vector<std::int64_t>(evicted.keys);
    }
    std::string image() {
        table.validate();
        tensorhash::io::MemorySink sink;
        tensorhash::io::write_bounded(sink, int_key, elements, {table, ledger});
        return bytes_of(sink.take());
    }

    std::vector<Element> elements;
    tensorhash::table::Table table;
    tensorhash::table::Ledger ledger;
};

TEST(ShardedBounds, a_cancelled_admission_leaves_the_shard_as_it_was) {
    Shard one(50);
    Shard twin(50);
    auto const ids = [](std::int64_t first, std::int64_t count) {
        std::vector<std::int64_t> out;
        for (std::int64_t i = 0; i < count; ++i) out.push_back(first + i * 7 % count);
        return out;
    };
    // Into an empty table, a full one, with existing keys, and with more rows than it holds.
    for (auto const& batch : {ids(0, 30), ids(20, 40), ids(45, 20), ids(1000, 120)}) {
        std::string const before = one.image();
        one.insert(batch, true);
        EXPECT_TRUE(same_bytes(one.image(), before));
        EXPECT_EQ(one.insert(batch, false), twin.insert(batch, false));
        EXPECT_TRUE(same_bytes(one.image(), twin.image()));
    }
}

TEST(ShardedBounds, a_batch_that_runs_out_of_memory_evicts_nothing) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "sanitizers need address space of their own";
#endif
    std::int64_t const rows = 200000;
    ShardedHashMap map(Bound{Capacity{rows}}, int_key, {{Dtype::Float32, {16}}}, cpus(2));
    std::vector<std::int64_t> ids(static_cast<std::size_t>(rows));
    auto const batch = [&](std::int64_t first) {
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = first + static_cast<std::int64_t>(i);
        return Tensor::from(ids);
    };
    Tensor const values = Tensor::zeros({rows, 16}, Dtype::Float32);
    map.insert(batch(0), {values}, {});
    map.insert(batch(rows / 2), {values}, {});
    std::string const before = bytes_of(map.to_bytes());
    Tensor const next = batch(5 * rows);
    int failed = 0;
    for (std::size_t megabytes : {1u, 2u, 4u, 6u, 8u, 12u, 16u}) {
        ShardedHashMap copy = map.clone();
        tensorhash::release_memory();  // memory kept by other tests would be enough
        try {
            AddressSpaceLimit const limit(megabytes << 20);
            copy.insert(next, {values}, {});
        } catch (std::bad_alloc const&) {
            ++failed;
            copy.validate();
            EXPECT_TRUE(same_bytes(bytes_of(copy.to_bytes()), before));
        }
    }
    EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace th_test
