// A sharded table as bytes: a short header, then one native image per shard. Loads onto any number of shards.
#include <cstring>
#include <optional>
#include <string>

#include "io/bounded_format.hpp"
#include "io/file.hpp"
#include "io/format.hpp"
#include "io/magic.hpp"
#include "sharded/impl.hpp"
#include "table/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using table::Batch;
using table::Reading;
using table::Table;

namespace {

constexpr std::uint32_t kVersion = 1;

[[noreturn]] void fail(std::string const& what) {
    throw FormatError("not a sound file of a sharded table: " + what);
}

/// What was read: the shards that wrote it, or one if a HashMap did.
struct Saved {
    std::string policy = "hash";
    std::vector<io::Restored> shards;
    std::vector<table::Ledger> ledgers;  // one per shard of a bounded table
};

void write_number(io::Sink& sink, std::uint64_t number) { sink.write(&number, sizeof(number)); }

std::uint64_t read_number(unsigned char const*& at, unsigned char const* end) {
    std::uint64_t number;
    if (static_cast<std::size_t>(end - at) < sizeof(number)) {
        fail("it ends within the header");
    }
    std::memcpy(&number, at, sizeof(number));
    at += sizeof(number);
    return number;
}

std::string read_name(unsigned char const*& at, unsigned char const* end) {
    std::uint64_t const bytes = read_number(at, end);
    if (bytes > sharded::kMaxNameBytes || bytes > static_cast<std::size_t>(end - at)) {
        fail("its policy's name has " + std::to_string(bytes) + " bytes");
    }
    std::string name(reinterpret_cast<char const*>(at), bytes);
    at += bytes;
    return name;
}

void read_shard(unsigned char const* at, std::size_t bytes, Saved& saved) {
    if (io::begins_with(at, bytes, io::kBoundedMagic)) {
        table::RestoredBounded part = table::read_bounded(at, bytes);
        saved.shards.push_back(
            {std::move(part.key), std::move(part.values), std::move(part.table)});
        saved.ledgers.push_back(std::move(part.ledger));
    } else {
        saved.shards.push_back(io::read_table(at, bytes));
    }
}

/// The shards of a bounded table are all bounded, and have seen the same batches.
void require_one_clock(Saved const& saved) {
    table::Ledger const& first = saved.ledgers.front();
    bool same = saved.ledgers.size() == saved.shards.size();
    for (table::Ledger const& ledger : saved.ledgers) {
        same = same && ledger.eviction == first.eviction && ledger.clock == first.clock &&
               ledger.uses == first.uses;
    }
    if (!same) {
        fail("its shards are not of one bounded table");
    }
}

Saved read_shards(unsigned char const* at, std::size_t count) {
    Saved saved;
    if (!io::begins_with(at, count, io::kShardedMagic)) {
        saved.shards.push_back(io::read_table(at, count));
        return saved;
    }
    unsigned char const* const end = at + count;
    at += sizeof(io::kShardedMagic);
    if (std::uint64_t const version = read_number(at, end); version != kVersion) {
        fail("it has version " + std::to_string(version) + ", this library reads version " +
             std::to_string(kVersion));
    }
    saved.policy = read_name(at, end);
    std::uint64_t const shards = read_number(at, end);
    if (shards == 0 || shards > runtime::kMaxDevices) {
        fail("it has " + std::to_string(shards) + " shards");
    }
    for (std::uint64_t shard = 0; shard < shards; ++shard) {
        std::uint64_t const bytes = read_number(at, end);
        if (bytes > static_cast<std::size_t>(end - at)) {
            fail("it ends within shard " + std::to_string(shard));
        }
        read_shard(at, bytes, saved);
        at += bytes;
        if (saved.shards.back().key != saved.shards.front().key ||
            saved.shards.back().values != saved.shards.front().values) {
            fail("its shards have different dtypes or shapes");
        }
    }
    if (at != end) {
        fail("it goes on after its last shard");
    }
    if (!saved.ledgers.empty()) {
        require_one_clock(saved);
    }
    return saved;
}

/// The keys of a table, and the indices they are at.
Tensor live_keys(Table const& table, Element const& key, Tensor& indices) {
    indices = table::listed(table);
    return table::gathered(table.keys(), key, indices);
}

/// Whether each saved shard holds just the keys that the policy gives to it.
bool fits(Saved const& saved, ShardPolicy const& policy, std::size_t shards) {
    if (saved.shards.size() != shards) {
        return false;
    }
    for (std::size_t shard = 0; shard < shards; ++shard) {
        io::Restored const& part = saved.shards[shard];
        Tensor indices;
        Tensor const keys = live_keys(part.table, part.key, indices);
        Tensor const owner =
            sharded::shards_of({keys, part.table.size()}, part.key, policy, shards);
        for (std::int32_t const at : owner.as<std::int32_t>()) {
            if (at != static_cast<std::int32_t>(shard)) {
                return false;
            }
        }
    }
    return true;
}

std::vector<Device> cpu_devices(std::size_t count) {
    std::vector<Device> devices;
    for (std::size_t i = 0; i < count; ++i) {
        devices.push_back({Device::Type::Cpu, static_cast<int>(i)});
    }
    return devices;
}

void write_shards(io::Sink& sink, std::string const& policy, Element const& key,
                  std::vector<Element> const& values, std::vector<Table>& tables,
                  std::vector<table::Ledger>& ledgers) {
    sink.write(io::kShardedMagic, sizeof(io::kShardedMagic));
    write_number(sink, kVersion);
    write_number(sink, policy.size());
    sink.write(policy.data(), policy.size());
    write_number(sink, tables.size());
    for (std::size_t shard = 0; shard < tables.size(); ++shard) {
        std::uint64_t const bytes = io::table_bytes(key, values, tables[shard]);
        if (ledgers.empty()) {
            write_number(sink, bytes);
            io::write_table(sink, key, values, tables[shard]);
        } else {
            write_number(sink, bytes + io::kHeadBytes);
            table::write_bounded(sink, key, values, {tables[shard], ledgers[shard]});
        }
    }
}

}  // namespace

void ShardedMap::save(std::string const& file_name) const {
    Reading const guard(impl_->lock);
    io::replace_file(file_name, [&](io::Sink& sink) {
        write_shards(sink, impl_->policy.name, impl_->key, impl_->elements(), impl_->tables,
                     impl_->ledgers);
    });
}

Tensor ShardedMap::to_bytes() const {
    Reading const guard(impl_->lock);
    io::MemorySink sink;
    write_shards(sink, impl_->policy.name, impl_->key, impl_->elements(), impl_->tables,
                 impl_->ledgers);
    return sink.take();
}

ShardedMap ShardedMap::load(std::string const& file_name, std::vector<Device> devices,
                            std::optional<ShardPolicy> policy) {
    try {
        return from_bytes(io::read_file(file_name), std::move(devices), std::move(policy));
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

ShardedMap ShardedMap::from_bytes(Tensor const& bytes, std::vector<Device> devices,
                                  std::optional<ShardPolicy> policy) {
    Tensor const image = table::check_bytes(bytes);
    Saved saved = read_shards(static_cast<unsigned char const*>(image.data()),
                              static_cast<std::size_t>(image.size()));
    if (devices.empty()) {
        devices = cpu_devices(saved.shards.size());
    }
    sharded::check_devices(devices);
    if (!policy) {
        if (saved.policy != "hash" && saved.policy != "mod") {
            throw ValueError("policy: the table was saved with a policy of its writer's own, \"" +
                             saved.policy + "\"; give one");
        }
        policy = policy_from_name(saved.policy);
    }
    Element const key = saved.shards[0].key;
    std::vector<Element> const values = saved.shards[0].values;
    if (fits(saved, *policy, devices.size())) {
        std::vector<Table> tables;
        for (io::Restored& part : saved.shards) {
            tables.push_back(std::move(part.table));
        }
        return ShardedMap(std::make_unique<Impl>(key, values, std::move(devices),
                                                 std::move(*policy), std::move(tables),
                                                 std::move(saved.ledgers)));
    }
    if (!saved.ledgers.empty()) {
        throw ValueError(
            "devices: a bounded table's shares hold on as many shards as it was saved "
            "from, " +
            std::to_string(saved.shards.size()) + ", with the same policy; got " +
            std::to_string(devices.size()) +
            (devices.size() == saved.shards.size() ? " and another policy" : ""));
    }
    std::int64_t entries = 0;
    for (io::Restored const& part : saved.shards) {
        entries += static_cast<std::int64_t>(part.table.size());
    }
    ShardedMap map(Capacity{entries}, key, values, std::move(devices), std::move(*policy));
    for (io::Restored const& part : saved.shards) {
        Tensor indices;
        Tensor const keys = live_keys(part.table, key, indices);
        std::vector<Tensor> columns;
        for (std::size_t i = 0; i < values.size(); ++i) {
            columns.push_back(table::gathered(part.table.values()[i], values[i], indices));
        }
        map.insert(keys, columns);
    }
    if (map.size() != entries) {
        throw FormatError("not a sound file of a sharded table: it holds equal keys in two shards");
    }
    return map;
}

}  // namespace tensorhash
