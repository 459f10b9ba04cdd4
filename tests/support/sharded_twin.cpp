#include "support/sharded_twin.hpp"

#include <utility>

#include "support/device.hpp"

namespace th_test {
namespace {

std::vector<Rows> one_row(std::vector<Rows> const& columns, std::size_t row) {
    std::vector<Rows> out;
    for (Rows const& column : columns) out.push_back(one_row(column, row));
    return out;
}

std::vector<Device> devices_of(Device::Type type, int count) {
    std::vector<Device> devices;
    for (int i = 0; i < count; ++i) devices.push_back({type, i});
    return devices;
}

}  // namespace

std::vector<Device> devices_under_test(int count) { return devices_of(test_device().type, count); }
std::vector<Device> cpus(int count) { return devices_of(Device::Type::Cpu, count); }

Rows one_row(Rows const& rows, std::size_t row) { return {rows.width, 1, std::string(rows[row])}; }

ShardedTwin::ShardedTwin(int shards, Element key, std::vector<Element> values, ShardPolicy policy)
    : table(tensorhash::Capacity{0}, key, values, devices_under_test(shards), std::move(policy)),
      oracles(static_cast<std::size_t>(shards), Oracle(0, key, values)), key_(key),
      values_(values) {}

void ShardedTwin::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    compare(
        table.insert(keys, values),
        rows(keys, values, [](Oracle& o, Rows const& k, auto const& v) { return o.insert(k, v); }),
        "insert");
}

void ShardedTwin::activate(Tensor const& keys) {
    compare(table.activate(keys),
            rows(keys, {}, [](Oracle& o, Rows const& k, auto const&) { return o.activate(k); }),
            "activate");
}

void ShardedTwin::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
    compare(table.insert_or_assign(keys, values),
            rows(keys, values,
                 [](Oracle& o, Rows const& k, auto const& v) { return o.insert_or_assign(k, v); }),
            "insert_or_assign");
}

void ShardedTwin::accumulate(Tensor const& keys, std::vector<Tensor> const& values, Reduce reduce) {
    std::vector<Reduce> const all(values_.size(), reduce);
    compare(table.accumulate(keys, values, {reduce}),
            rows(keys, values,
                 [&](Oracle& o, Rows const& k, auto const& v) { return o.accumulate(k, v, all); }),
            "accumulate");
}

void ShardedTwin::find(Tensor const& keys) {
    Answers const want =
        rows(keys, {}, [](Oracle& o, Rows const& k, auto const&) { return o.find(k); });
    compare(table.find(keys), want, "find");
    require_equal(mask_of(table.contains(keys)), want.mask, "contains");
}

void ShardedTwin::erase(Tensor const& keys) {
    Answers const want = rows(keys, {}, [](Oracle& o, Rows const& k, auto const&) {
        return OracleLocated{{-1}, o.erase(k)};
    });
    require_equal(mask_of(table.erase(keys)), want.mask, "erase");
}

void ShardedTwin::assign(Tensor const& keys, std::vector<Tensor> const& values) {
    Answers const want = rows(keys, values, [](Oracle& o, Rows const& k, auto const& v) {
        OracleLocated found = o.find(k);
        if (found.mask[0]) o.insert_or_assign(k, v);
        return found;
    });
    require_equal(mask_of(table.assign(keys, values)), want.mask, "assign");
}

void ShardedTwin::get(Tensor const& keys, std::vector<Tensor> const& defaults) {
    std::vector<std::string> want(values_.size());
    rows(keys, defaults, [&](Oracle& o, Rows const& k, auto const& v) {
        auto const one = o.get(k, v);
        for (std::size_t c = 0; c < want.size(); ++c) want[c] += one[c];
        return o.find(k);
    });
    auto const got = table.get(keys, defaults);
    for (std::size_t c = 0; c < want.size(); ++c)
        require_equal(bytes_of(got[c]), want[c], values_[c].bytes(), "get");
}

void ShardedTwin::clear() {
    table.clear();
    for (Oracle& oracle : oracles) oracle.clear();
}

void ShardedTwin::compact() {
    auto const moved = table.compact();
    for (std::size_t s = 0; s < oracles.size(); ++s) {
        // The oracle keeps no slack, so its capacity may be smaller.
        std::vector<std::int32_t> want = oracles[s].compact();
        std::vector<std::int32_t> got = to_vector<std::int32_t>(moved[s]);
        require_equal(static_cast<std::int64_t>(got.size()), table.capacity(s), "compact rows");
        got.resize(want.size());
        require_equal(got, want, "compact");
    }
}

void ShardedTwin::check() const {
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

ShardedTwin::Answers ShardedTwin::rows(Tensor const& keys, std::vector<Tensor> const& values,
                                       Call const& call) {
    Rows const key_rows = rows_of(keys, key_);
    std::vector<Rows> const value_rows = rows_of(values, values_);
    auto const shard = to_vector<std::int32_t>(table.shard_of(keys));
    Answers out;
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

void ShardedTwin::compare(ShardedLocated const& got, Answers const& want, std::string const& what) {
    require_equal(mask_of(got.mask), want.mask, what + " mask");
    require_equal(to_vector<std::int64_t>(got.indices), want.indices, what + " indices");
}

}  // namespace th_test
