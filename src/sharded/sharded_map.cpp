// ShardedMap's batches: routed before the lock is taken, prepared on all shards, then finished on all or on none.
#include "tensorhash/sharded/sharded_map.hpp"

#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "sharded/impl.hpp"
#include "table/get.hpp"
#include "table/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using table::Reading;
using sharded::Routed;
using table::Writing;
using table::Answers;
using table::Batch;
using table::with_rows;

namespace {

/// What the shards answer, grouped as the rows they were given, and room for the same in the caller's order: once the
/// shards have changed nothing may fail.
class Grouped {
public:
    explicit Grouped(Routed const& rows)
        : routed_(rows), numbers_(rows.rows() * sizeof(std::uint32_t)), mask_(rows.rows()),
          out_{Tensor::empty(with_rows(rows.rows(), {}), Dtype::Int64),
               Tensor::empty(with_rows(rows.rows(), {}), Dtype::Bool)} {}

    Answers of(std::size_t shard) noexcept {
        return {reinterpret_cast<std::uint32_t*>(numbers_.data()) + routed_.begin(shard),
                mask_.data() + routed_.begin(shard)};
    }
    Located located(std::size_t shards) noexcept;
    Tensor mask() noexcept;

private:
    Routed const& routed_;
    runtime::Block numbers_;
    runtime::Block mask_;
    Located out_;
};

Located Grouped::located(std::size_t shards) noexcept {
    auto* const global = static_cast<std::int64_t*>(out_.indices.data());
    for (std::size_t shard = 0; shard < shards; ++shard) {
        auto const* const local = reinterpret_cast<std::int32_t const*>(of(shard).numbers);
        auto const* const row = routed_.order() + routed_.begin(shard);
        runtime::for_ranges(
            routed_.rows(shard), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    global[row[i]] = local[i] < 0
                                         ? -1
                                         : global_index(static_cast<std::int64_t>(shard), local[i]);
                }
            });
    }
    mask();
    return std::move(out_);
}

Tensor Grouped::mask() noexcept {
    auto* const bytes = static_cast<unsigned char*>(out_.mask.data());
    runtime::for_ranges(routed_.rows(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            bytes[routed_.order()[i]] = mask_.data()[i];
        }
    });
    return out_.mask;
}

/// A column's rows, grouped; those of a shard begin at its first row.
struct GroupedColumn {
    GroupedColumn(Routed const& routed, Batch const& batch, std::size_t bytes)
        : row_bytes(bytes), rows(routed.grouped(batch.data(), bytes)) {}
    table::Bytes from(std::size_t row) const noexcept { return rows.data() + row * row_bytes; }

    std::size_t row_bytes;
    runtime::Block rows;
};

std::vector<GroupedColumn> grouped_columns(Routed const& routed, std::vector<Batch> const& batches,
                                           std::vector<Element> const& elements) {
    std::vector<GroupedColumn> columns;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        columns.emplace_back(routed, batches[i], elements[i].bytes());
    }
    return columns;
}

/// parts[shard][column]: where each shard's rows of each column begin.
std::vector<std::vector<table::Bytes>> parts_of(std::vector<GroupedColumn> const& columns,
                                                Routed const& routed, std::size_t shards) {
    std::vector<std::vector<table::Bytes>> parts(shards);
    for (std::size_t shard = 0; shard < shards; ++shard) {
        for (GroupedColumn const& column : columns) {
            parts[shard].push_back(column.from(routed.begin(shard)));
        }
    }
    return parts;
}

}  // namespace

void sharded::check_devices(std::vector<Device> const& devices) {
    if (devices.empty()) {
        throw ValueError("devices: expected at least one, such as \"cpu:0\", got none");
    }
    std::set<int> seen;
    for (Device const device : devices) {
        if (device.is_cuda()) {
            require_usable(device, "devices");
        }
        if (device.id < 0 || device.id >= static_cast<int>(runtime::kMaxDevices)) {
            throw ValueError(
                "devices: expected \"cpu:0\" to \"cpu:" + std::to_string(runtime::kMaxDevices - 1) +
                "\", got \"" + to_string(device) + "\"");
        }
        if (!seen.insert(device.id).second) {
            throw ValueError("devices: expected each device once, got \"" + to_string(device) +
                             "\" twice");
        }
    }
}

std::uint64_t sharded::capacity_of_shard(Capacity capacity, std::size_t shards,
                                         char const* argument) {
    std::uint64_t const most = table::kMaxEntries * shards;
    if (capacity.rows < 0 || static_cast<std::uint64_t>(capacity.rows) > most) {
        throw ValueError(std::string(argument) + ": expected 0 to " + std::to_string(most) +
                         " entries, got " + std::to_string(capacity.rows));
    }
    if (shards == 1 || capacity.rows == 0) {
        return static_cast<std::uint64_t>(capacity.rows);
    }
    // Five standard deviations: one shard in millions gets more of evenly spread keys.
    double const mean = static_cast<double>(capacity.rows) / static_cast<double>(shards);
    return std::min(table::kMaxEntries,
                    static_cast<std::uint64_t>(std::ceil(mean + 5 * std::sqrt(mean))));
}

ShardedMap::Impl::Impl(Element key_element, std::vector<Element> value_elements,
                       std::vector<Device> on, ShardPolicy rule, std::vector<table::Table> shards)
    : key(std::move(key_element)), values(std::move(value_elements)), devices(std::move(on)),
      policy(std::move(rule)), tables(std::move(shards)) {
    for (Device const device : devices) {
        pools.push_back(device.id);
    }
}

void ShardedMap::Impl::check_shard(std::size_t shard) const {
    if (shard >= tables.size()) {
        throw IndexError("shard: expected 0 to " + std::to_string(tables.size() - 1) + ", got " +
                         std::to_string(shard));
    }
}

ShardedMap::ShardedMap(Capacity init_capacity, Element key, std::vector<Element> values,
                       std::vector<Device> devices, ShardPolicy policy) {
    sharded::check_devices(devices);
    table::check_key_element(key);
    for (std::size_t i = 0; i < values.size(); ++i) {
        table::check_value_element(values[i], i);
    }
    if (!policy.route) {
        throw ValueError("policy: expected a function, got none");
    }
    std::uint64_t const capacity =
        sharded::capacity_of_shard(init_capacity, devices.size(), "init_capacity");
    // A policy that does not take such keys says so now, not at the first batch.
    sharded::shards_of({Tensor::zeros(with_rows(1, key.shape), key.dtype), 1}, key, policy,
                       devices.size());
    std::vector<table::Table> tables;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        tables.emplace_back(key, values, capacity);
    }
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(devices),
                                   std::move(policy), std::move(tables));
}

ShardedMap::ShardedMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShardedMap::ShardedMap(ShardedMap&&) noexcept = default;
ShardedMap& ShardedMap::operator=(ShardedMap&&) noexcept = default;
ShardedMap::~ShardedMap() = default;

ShardedMap ShardedMap::from_items(Tensor const& keys, std::vector<Tensor> const& values,
                                  std::vector<Device> devices, ShardPolicy policy) {
    std::vector<Element> elements;
    for (std::size_t i = 0; i < values.size(); ++i) {
        elements.push_back(table::element_of(values[i], "values[" + std::to_string(i) + "]"));
    }
    ShardedMap map(Capacity{0}, table::element_of(keys, "keys"), std::move(elements),
                   std::move(devices), std::move(policy));
    map.insert(keys, values);
    return map;
}

/// Without `reduce` the new keys get zeros.
Located ShardedMap::Impl::add(Tensor const& shard_of_row, Batch const& keys,
                              std::vector<Batch> const& columns,
                              std::vector<Reduce> const* reduce) {
    std::size_t const shards = tables.size();
    Routed const routed(shard_of_row, shards);
    GroupedColumn const rows(routed, keys, key.bytes());
    std::vector<GroupedColumn> const grouped = grouped_columns(routed, columns, values);
    auto const parts = parts_of(grouped, routed, shards);
    Grouped answers(routed);
    std::vector<std::optional<table::Adding>> adding(shards);

    Writing guard(lock);
    try {
        each_shard([&](std::size_t shard) {
            adding[shard] = tables[shard].prepare_add(rows.from(routed.begin(shard)),
                                                      routed.rows(shard), answers.of(shard));
        });
    } catch (...) {
        for (std::size_t shard = 0; shard < shards; ++shard) {
            if (adding[shard]) {
                tables[shard].cancel(*adding[shard]);
            }
        }
        throw;
    }
    finish_shards([&](std::size_t shard) {
        if (reduce == nullptr) {
            tables[shard].finish_activate(std::move(*adding[shard]));
        } else {
            tables[shard].finish_upsert(std::move(*adding[shard]), parts[shard], *reduce);
        }
    });
    guard.unlock();
    return answers.located(shards);
}

Located ShardedMap::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    return accumulate(keys, values, {Reduce::First});
}

Located ShardedMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
    return accumulate(keys, values, {Reduce::Last});
}

Located ShardedMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                               std::vector<Reduce> const& reduce) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> const columns = table::check_values(values, impl_->values, batch.rows);
    std::vector<Reduce> const reduces = table::check_reduce(reduce, impl_->values.size());
    return impl_->add(impl_->shards_of(batch), batch, columns, &reduces);
}

Located ShardedMap::activate(Tensor const& keys) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    return impl_->add(impl_->shards_of(batch), batch, {}, nullptr);
}

Located ShardedMap::insert_into(std::size_t shard, Tensor const& keys,
                                std::vector<Tensor> const& values) {
    impl_->check_shard(shard);
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> const columns = table::check_values(values, impl_->values, batch.rows);
    Tensor const owner = impl_->shards_of(batch);
    for (std::size_t row = 0; row < batch.rows; ++row) {
        auto const at = static_cast<std::size_t>(owner.as<std::int32_t>()[row]);
        if (at != shard) {
            throw ValueError("keys: row " + std::to_string(row) + " belongs to " +
                             to_string(impl_->devices[at]) + ", not to " +
                             to_string(impl_->devices[shard]) +
                             "; insert() sends each row where it belongs");
        }
    }
    std::vector<Reduce> const reduces(impl_->values.size(), Reduce::First);
    return impl_->add(owner, batch, columns, &reduces);
}

Tensor ShardedMap::shard_of(Tensor const& keys) const {
    return impl_->shards_of(table::check_batch(keys, impl_->key, "keys"));
}

Located ShardedMap::find(Tensor const& keys) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Routed const routed(impl_->shards_of(batch), shards());
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    Grouped answers(routed);
    {
        Reading const guard(impl_->lock);
        impl_->each_shard([&](std::size_t shard) {
            impl_->tables[shard].find(rows.from(routed.begin(shard)), routed.rows(shard),
                                      answers.of(shard));
        });
    }
    return answers.located(shards());
}

Tensor ShardedMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor ShardedMap::erase(Tensor const& keys) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Routed const routed(impl_->shards_of(batch), shards());
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    Grouped answers(routed);
    std::vector<std::optional<table::Erasing>> erasing(shards());
    Writing guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        erasing[shard] = impl_->tables[shard].prepare_erase(routed.rows(shard));
    });
    impl_->finish_shards([&](std::size_t shard) {
        impl_->tables[shard].finish_erase(*erasing[shard], rows.from(routed.begin(shard)),
                                          routed.rows(shard), answers.of(shard).mask);
    });
    guard.unlock();
    return answers.mask();
}

std::vector<Tensor> ShardedMap::get(Tensor const& keys, std::vector<Tensor> const& defaults) const {
    return get_with_mask(keys, defaults).values;
}

ShardedMap::Found ShardedMap::get_with_mask(Tensor const& keys,
                                            std::vector<Tensor> const& defaults) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    table::Values values(impl_->values, defaults, batch.rows);
    Routed const routed(impl_->shards_of(batch), shards());
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    Grouped answers(routed);
    Reading guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        table::Table const& here = impl_->tables[shard];
        Answers const found = answers.of(shard);
        here.find(rows.from(routed.begin(shard)), routed.rows(shard), found);
        values.gather_part(here, found.numbers, routed.order() + routed.begin(shard),
                           routed.rows(shard));
    });
    guard.unlock();
    return {values.take(), answers.mask()};
}

Tensor ShardedMap::assign(Tensor const& keys, std::vector<Tensor> const& values) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> const columns = table::check_values(values, impl_->values, batch.rows);
    Routed const routed(impl_->shards_of(batch), shards());
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    std::vector<GroupedColumn> const grouped = grouped_columns(routed, columns, impl_->values);
    auto const parts = parts_of(grouped, routed, shards());
    Grouped answers(routed);
    Writing guard(impl_->lock);
    impl_->finish_shards([&](std::size_t shard) {
        impl_->tables[shard].assign(rows.from(routed.begin(shard)), routed.rows(shard),
                                    parts[shard], answers.of(shard));
    });
    guard.unlock();
    return answers.mask();
}

Tensor ShardedMap::update(Tensor const& keys, RowUpdate const& change) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Routed const routed(impl_->shards_of(batch), shards());
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    Grouped answers(routed);
    std::vector<table::Remembered> before(shards());
    Writing guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        table::Table& here = impl_->tables[shard];
        here.find(rows.from(routed.begin(shard)), routed.rows(shard), answers.of(shard));
        before[shard] = here.remember(answers.of(shard), routed.rows(shard));
    });
    try {
        impl_->each_shard([&](std::size_t shard) {
            auto const* const row = routed.order() + routed.begin(shard);
            impl_->tables[shard].visit_found(
                answers.of(shard), routed.rows(shard),
                [&](std::size_t i, void* const* at) { change(row[i], at); });
        });
    } catch (...) {
        impl_->finish_shards([&](std::size_t shard) {
            impl_->tables[shard].put_back(before[shard], answers.of(shard), routed.rows(shard));
        });
        throw;
    }
    guard.unlock();
    return answers.mask();
}

}  // namespace tensorhash
