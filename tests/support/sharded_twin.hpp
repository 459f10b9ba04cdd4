// A sharded table and its oracle: one plain oracle per shard, fed row by row with the test's own
// routing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/fixtures.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace th_test {

using tensorhash::Device;
using tensorhash::ShardedHashMap;
using tensorhash::ShardedLocated;
using tensorhash::ShardPolicy;

/// Devices of the type under test, with the ids from 0 on.
std::vector<Device> devices_under_test(int count);
/// The same on the CPU.
std::vector<Device> cpus(int count);
Rows one_row(Rows const& rows, std::size_t row);

/// Sends every row, alone, to the oracle of its shard.
class ShardedTwin {
public:
    ShardedTwin(int shards, Element key, std::vector<Element> values, ShardPolicy policy);

    void insert(Tensor const& keys, std::vector<Tensor> const& values);
    void activate(Tensor const& keys);
    void insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values);
    void accumulate(Tensor const& keys, std::vector<Tensor> const& values, Reduce reduce);
    void find(Tensor const& keys);
    void erase(Tensor const& keys);
    void assign(Tensor const& keys, std::vector<Tensor> const& values);
    void get(Tensor const& keys, std::vector<Tensor> const& defaults);
    void clear();
    void compact();

    /// Compares everything visible from outside, and calls validate().
    void check() const;

    ShardedHashMap table;
    std::vector<Oracle> oracles;

private:
    struct Answers {
        std::vector<std::int64_t> indices;
        std::vector<std::uint8_t> mask;
    };
    using Call = std::function<OracleLocated(Oracle&, Rows const& key, std::vector<Rows> const&)>;

    Answers rows(Tensor const& keys, std::vector<Tensor> const& values, Call const& call);
    static void compare(ShardedLocated const& got, Answers const& want, std::string const& what);

    Element key_;
    std::vector<Element> values_;
};

}  // namespace th_test
