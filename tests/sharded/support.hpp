// A sharded table and its oracle: one plain oracle per shard, fed row by row by a routing of the test's own.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "contract/support.hpp"
#include "tensorhash/sharded/multi_device_hash_table.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace th_test {

using tensorhash::Device;
using tensorhash::ShardedMap;
using tensorhash::ShardPolicy;

inline std::vector<Device> cpus(int count) {
    std::vector<Device> devices;
    for (int i = 0; i < count; ++i) devices.push_back({Device::Type::Cpu, i});
    return devices;
}

inline Rows one_row(Rows const& rows, std::size_t row) {
    return {rows.width, 1, std::string(rows[row])};
}
inline std::vector<Rows> one_row(std::vector<Rows> const& columns, std::size_t row) {
    std::vector<Rows> out;
    for (Rows const& column : columns) out.push_back(one_row(column, row));
    return out;
}

struct GlobalAnswers {
    std::vector<std::int64_t> indices;
    std::vector<std::uint8_t> mask;
};

/// Every row goes, alone, to the oracle of its shard.
class ShardedTwin {
public:
    ShardedTwin(int shards, Element key, std::vector<Element> values, ShardPolicy policy)
        : table(tensorhash::Capacity{0}, key, values, cpus(shards), std::move(policy)),
          oracles(static_cast<std::size_t>(shards), Oracle(0, key, values)), key_(key),
          values_(values) {}

    void insert(Tensor const& keys, std::vector<Tensor> const& values) {
        check(table.insert(keys, values),
              rows(keys, values, [](Oracle& o, Rows k, auto v) { return o.insert(k, v); }),
              "insert");
    }
    void activate(Tensor const& keys) {
        check(table.activate(keys),
              rows(keys, {}, [](Oracle& o, Rows k, auto) { return o.activate(k); }), "activate");
    }
    void insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
        check(
            table.insert_or_assign(keys, values),
            rows(keys, values, [](Oracle& o, Rows k, auto v) { return o.insert_or_assign(k, v); }),
            "insert_or_assign");
    }
    void accumulate(Tensor const& keys, std::vector<Tensor> const& values, Reduce reduce) {
        std::vector<Reduce> const all(values_.size(), reduce);
        check(
            table.accumulate(keys, values, {reduce}),
            rows(keys, values, [&](Oracle& o, Rows k, auto v) { return o.accumulate(k, v, all); }),
            "accumulate");
    }
    void find(Tensor const& keys) {
        GlobalAnswers const want =
            rows(keys, {}, [](Oracle& o, Rows k, auto) { return o.find(k); });
        check(table.find(keys), want, "find");
        require_equal(mask_of(table.contains(keys)), want.mask, "contains");
    }
    void erase(Tensor const& keys) {
        GlobalAnswers const want =
            rows(keys, {}, [](Oracle& o, Rows k, auto) { return OracleLocated{{-1}, o.erase(k)}; });
        require_equal(mask_of(table.erase(keys)), want.mask, "erase");
    }
    void assign(Tensor const& keys, std::vector<Tensor> const& values) {
        GlobalAnswers const want = rows(keys, values, [](Oracle& o, Rows k, auto v) {
            OracleLocated found = o.find(k);
            if (found.mask[0]) o.insert_or_assign(k, v);
            return found;
        });
        require_equal(mask_of(table.assign(keys, values)), want.mask, "assign");
    }
    void get(Tensor const& keys, std::vector<Tensor> const& defaults) {
        std::vector<std::string> want(values_.size());
        rows(keys, defaults, [&](Oracle& o, Rows k, auto v) {
            auto const one = o.get(k, v);
            for (std::size_t c = 0; c < want.size(); ++c) want[c] += one[c];
            return o.find(k);
        });
        auto const got = table.get(keys, defaults);
        for (std::size_t c = 0; c < want.size(); ++c)
            require_equal(bytes_of(got[c]), want[c], values_[c].bytes(), "get");
    }
    void clear() {
        table.clear();
        for (Oracle& oracle : oracles) oracle.clear();
    }
    void compact() {
        auto const moved = table.compact();
        for (std::size_t s = 0; s < oracles.size(); ++s) {
            // The oracle's capacity may be smaller: it does not keep slack.
            std::vector<std::int32_t> want = oracles[s].compact();
            std::vector<std::int32_t> got = to_vector<std::int32_t>(moved[s]);
            require_equal(static_cast<std::int64_t>(got.size()), table.capacity(s), "compact rows");
            got.resize(want.size());
            require_equal(got, want, "compact");
        }
    }
    /// Everything that can be seen from outside, and validate().
    void check() const {
        table.validate();
        std::vector<std::int64_t> indices;
        std::string keys;
        std::vector<std::string> columns(values_.size());
        std::int64_t size = 0;
        for (std::size_t s = 0; s < oracles.size(); ++s) {
            for (std::int32_t const local : oracles[s].active())
                indices.push_back(tensorhash::global_index(static_cast<std::int64_t>(s), local));
            keys += oracles[s].keys();
            for (std::size_t c = 0; c < columns.size(); ++c) columns[c] += oracles[s].column(c);
            size += oracles[s].size();
            require_equal(table.size(s), oracles[s].size(), "size of a shard");
        }
        require_equal(table.size(), size, "size");
        require_equal(to_vector<std::int64_t>(table.active_buf_indices()), indices, "active");
        require_equal(bytes_of(table.keys()), keys, key_.bytes(), "keys");
        tensorhash::Items const items = table.items();
        require_equal(bytes_of(items.keys), keys, key_.bytes(), "items keys");
        for (std::size_t c = 0; c < columns.size(); ++c)
            require_equal(bytes_of(items.values[c]), columns[c], values_[c].bytes(), "items");
    }

    ShardedMap table;
    std::vector<Oracle> oracles;

private:
    template <class Call>
    GlobalAnswers rows(Tensor const& keys, std::vector<Tensor> const& values, Call call) {
        Rows const key_rows = rows_of(keys, key_);
        std::vector<Rows> const value_rows = rows_of(values, values_);
        auto const shard = to_vector<std::int32_t>(table.shard_of(keys));
        GlobalAnswers out;
        for (std::size_t row = 0; row < key_rows.count; ++row) {
            auto const s = static_cast<std::size_t>(shard[row]);
            OracleLocated const one =
                call(oracles[s], one_row(key_rows, row), one_row(value_rows, row));
            out.indices.push_back(
                one.indices[0] < 0 ? -1 : tensorhash::global_index(shard[row], one.indices[0]));
            out.mask.push_back(one.mask[0]);
        }
        return out;
    }
    static void check(Located const& got, GlobalAnswers const& want, std::string const& what) {
        require_equal(mask_of(got.mask), want.mask, what + " mask");
        require_equal(to_vector<std::int64_t>(got.indices), want.indices, what + " indices");
    }

    Element key_;
    std::vector<Element> values_;
};

}  // namespace th_test
