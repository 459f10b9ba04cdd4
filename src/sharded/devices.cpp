// Lookups over shards on devices besides the CPU. The call's device groups the keys and brings the
// answers back; each shard works on its own device.
#include <optional>
#include <string>
#include <utility>

#include "map/get.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using map::CheckedBatch;
using sharded::Grouped;
using sharded::GroupedColumn;
using sharded::GroupedFill;
using sharded::GroupedRows;
using sharded::Placement;

ShardedLocated ShardedHashMap::Impl::find_on_devices(CheckedBatch const& keys) const {
    Placement const at = placement(keys);
    auto const routed = route(keys);
    GroupedColumn const rows(*routed, at, keys, key.bytes());
    Grouped answers = Grouped::with_indices(*routed, at);
    map::Reading guard = reading();
    each_shard([&](std::size_t shard) {
        tables[shard]->find(part(rows, *routed, shard), answers.of(shard));
    });
    guard.unlock();
    map::mark_read(keys);
    return answers.located(keys.home);
}

ShardedHashMap::ValuesAndMask ShardedHashMap::Impl::get_on_devices(
    CheckedBatch const& keys, std::vector<Tensor> const& defaults) const {
    Placement const at = placement(keys);
    map::Defaults const missing(values, defaults, keys.rows, at.at);
    auto const routed = route(keys);
    GroupedColumn const rows(*routed, at, keys, key.bytes());
    Grouped answers(*routed, at);
    std::vector<Tensor> out = map::empty_rows(values, keys.rows, at.at);
    std::vector<GroupedRows> columns;
    std::vector<std::optional<GroupedFill>> fills(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        columns.emplace_back(*routed, at, values[i].bytes());
        if (map::FillRows const* const fill = missing.of(i); fill != nullptr) {
            fills[i].emplace(*routed, at, *fill, values[i].bytes());
        }
    }

    map::Reading guard = reading();
    each_shard([&](std::size_t shard) {
        backend::Answers const found = answers.of(shard);
        tables[shard]->find(part(rows, *routed, shard), found);
        for (std::size_t i = 0; i < columns.size(); ++i) {
            backend::DefaultRows const fill =
                fills[i] ? fills[i]->of(shard) : backend::DefaultRows{};
            tables[shard]->gather(i, {found.indices, routed->rows(shard), fill},
                                  columns[i].of(shard));
        }
    });
    guard.unlock();
    map::mark_read(keys);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (map::FillRows const* const fill = missing.of(i); fill != nullptr) {
            map::mark_read(fill->batch);
        }
        columns[i].collect();
        routed->ungroup_rows(columns[i].data(), values[i].bytes(),
                             static_cast<unsigned char*>(out[i].data()));
        out[i] = map::deliver(std::move(out[i]), keys.home);
    }
    return {std::move(out), answers.mask(keys.home)};
}

}  // namespace tensorhash
