// Sharded tables as files: a short header, then one table image per shard. A file loads onto any
// number of shards, unless the table is bounded.
#include <cstring>
#include <optional>
#include <string>

#include "io/bounded_format.hpp"
#include "io/file.hpp"
#include "io/format.hpp"
#include "io/magic.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"

namespace tensorhash {

using map::Reading;

namespace {

constexpr std::uint32_t kVersion = 1;

[[noreturn]] void fail(std::string const& what) {
    throw FormatError("not a valid file of a sharded table: " + what);
}

/// A checked file, before its tables are built: one image per saved shard, or one if a HashMap
/// wrote it.
struct Images {
    std::string policy = "hash";
    std::vector<io::Image> tables;
    std::vector<io::BoundedHead> heads;  // one per shard if the table is bounded
};

/// The tables of a file.
struct Saved {
    std::string policy;
    Element key;
    std::vector<Element> values;
    sharded::Tables shards;
    std::vector<table::Ledger> ledgers;  // one per shard if the table is bounded
};

void write_number(io::Sink& sink, std::uint64_t number) { sink.write(&number, sizeof(number)); }

std::uint64_t read_number(unsigned char const*& at, unsigned char const* end) {
    std::uint64_t number;
    if (static_cast<std::size_t>(end - at) < sizeof(number)) {
        fail("it ends inside the header");
    }
    std::memcpy(&number, at, sizeof(number));
    at += sizeof(number);
    return number;
}

std::string read_name(unsigned char const*& at, unsigned char const* end) {
    std::uint64_t const bytes = read_number(at, end);
    if (bytes > sharded::kMaxNameBytes || bytes > static_cast<std::size_t>(end - at)) {
        fail("its policy name has " + std::to_string(bytes) + " bytes");
    }
    std::string name(reinterpret_cast<char const*>(at), bytes);
    at += bytes;
    return name;
}

void read_shard(unsigned char const* at, std::size_t bytes, Images& images) {
    if (io::begins_with(at, bytes, io::kBoundedMagic)) {
        io::BoundedImage part = io::read_bounded(at, bytes);
        images.heads.push_back(part.head);
        images.tables.push_back(std::move(part.table));
    } else {
        images.tables.push_back(io::read_image(at, bytes));
    }
    io::Image const& first = images.tables.front();
    io::Image const& last = images.tables.back();
    if (last.key != first.key || last.values != first.values) {
        fail("its shards have different dtypes or shapes");
    }
}

/// In a bounded table all shards are bounded and have seen the same batches.
void require_one_clock(Images const& images) {
    if (images.heads.empty()) {
        return;
    }
    io::BoundedHead const& first = images.heads.front();
    bool same = images.heads.size() == images.tables.size();
    for (io::BoundedHead const& head : images.heads) {
        same = same && head.eviction == first.eviction && head.clock == first.clock &&
               head.uses == first.uses;
    }
    if (!same) {
        fail("its shards do not belong to one bounded table");
    }
}

Images read_images(unsigned char const* at, std::size_t count) {
    Images images;
    if (!io::begins_with(at, count, io::kShardedMagic)) {
        images.tables.push_back(io::read_image(at, count));
        return images;
    }
    unsigned char const* const end = at + count;
    at += sizeof(io::kShardedMagic);
    if (std::uint64_t const version = read_number(at, end); version != kVersion) {
        fail(io::wrong_version(version, kVersion));
    }
    images.policy = read_name(at, end);
    std::uint64_t const shards = read_number(at, end);
    if (shards == 0 || shards > runtime::kMaxDevices) {
        fail("it has " + std::to_string(shards) + " shards");
    }
    for (std::uint64_t shard = 0; shard < shards; ++shard) {
        std::uint64_t const bytes = read_number(at, end);
        if (bytes > static_cast<std::size_t>(end - at)) {
            fail("it ends inside shard " + std::to_string(shard));
        }
        read_shard(at, bytes, images);
        at += bytes;
    }
    if (at != end) {
        fail("it has bytes after its last shard");
    }
    require_one_clock(images);
    return images;
}

/// Builds the tables of a checked file; together they may take `limit` bytes. They go to `devices`
/// if there is one for each, otherwise to the CPU: they are read again there.
Saved build_shards(Images&& images, std::vector<Device> const& devices, std::uint64_t limit) {
    bool const in_place = devices.size() == images.tables.size();
    bool const bounded = !images.heads.empty();
    if (bounded) {
        if (!devices[0].is_cpu()) {
            require_cpu(devices[0], "devices", "bounded tables");
        }
        io::require_within(io::memory_of(images.tables), limit);
    }
    bool const whole = io::fits_with_capacity(images.tables, limit);
    Saved saved{std::move(images.policy), images.tables[0].key, images.tables[0].values, {}, {}};
    for (std::size_t shard = 0; shard < images.tables.size(); ++shard) {
        io::Image& image = images.tables[shard];
        Device const device = in_place ? devices[shard] : Device{};
        if (bounded) {
            io::RestoredBounded part = io::build_bounded({images.heads[shard], std::move(image)});
            saved.values = std::move(part.values);  // without the hidden columns
            saved.shards.push_back(
                std::make_unique<table::CpuTable>(std::move(part.table), device));
            saved.ledgers.push_back(std::move(part.ledger));
        } else {
            saved.shards.push_back(
                io::build_table(image, whole ? image.capacity : image.top, device));
        }
    }
    return saved;
}

/// Whether `shards` shards were saved and each holds only keys that the policy assigns to it.
bool fits(Saved const& saved, ShardPolicy const& policy, std::size_t shards) {
    if (saved.shards.size() != shards) {
        return false;
    }
    for (std::size_t shard = 0; shard < shards; ++shard) {
        Tensor const keys = map::items_of(*saved.shards[shard], saved.key, {}).keys.to(Device{});
        auto const rows = static_cast<std::size_t>(keys.shape()[0]);
        Tensor const owner = sharded::shards_of({keys, rows}, saved.key, policy, shards);
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
                  std::vector<Element> const& values, sharded::Tables const& tables,
                  std::vector<table::Ledger>& ledgers) {
    sink.write(io::kShardedMagic, sizeof(io::kShardedMagic));
    write_number(sink, kVersion);
    write_number(sink, policy.size());
    sink.write(policy.data(), policy.size());
    write_number(sink, tables.size());
    for (std::size_t shard = 0; shard < tables.size(); ++shard) {
        backend::TableImage const image = tables[shard]->to_cpu();
        std::uint64_t const bytes = io::table_bytes(key, values, image);
        if (ledgers.empty()) {
            write_number(sink, bytes);
            io::write_table(sink, key, values, image);
        } else {
            write_number(sink, bytes + io::kHeadBytes);
            io::write_bounded(sink, key, values, {table::on_cpu(*tables[shard]), ledgers[shard]});
        }
    }
}

/// Routes the entries again, for another number of shards or another policy than the file's.
ShardedHashMap reroute(Saved const& saved, std::vector<Device> devices, ShardPolicy policy,
                       std::uint64_t limit) {
    std::int64_t entries = 0;
    for (auto const& part : saved.shards) {
        entries += static_cast<std::int64_t>(part->sizes().entries);
    }
    io::require_within(
        backend::backend_for(devices[0], "devices")
            .memory_for({saved.key, saved.values, static_cast<std::uint64_t>(entries)}),
        limit);
    ShardedHashMap made(Capacity{entries}, saved.key, saved.values, std::move(devices),
                        std::move(policy));
    for (auto const& part : saved.shards) {
        Items const items = map::items_of(*part, saved.key, saved.values);
        made.insert(items.keys, items.values);
    }
    if (made.size() != entries) {
        fail("two of its shards hold the same key");
    }
    return made;
}

}  // namespace

void ShardedHashMap::save(std::string const& file_name) const {
    Reading const guard = impl_->reading();
    io::replace_file(file_name, [&](io::Sink& sink) {
        write_shards(sink, impl_->policy.name, impl_->key, impl_->elements(), impl_->tables,
                     impl_->ledgers);
    });
}

Tensor ShardedHashMap::to_bytes() const {
    Reading const guard = impl_->reading();
    io::MemorySink sink;
    write_shards(sink, impl_->policy.name, impl_->key, impl_->elements(), impl_->tables,
                 impl_->ledgers);
    return sink.take();
}

ShardedHashMap ShardedHashMap::load(std::string const& file_name, std::vector<Device> devices,
                                    std::optional<ShardPolicy> policy,
                                    std::optional<std::uint64_t> max_bytes) {
    try {
        return from_bytes(io::read_file(file_name, max_bytes), std::move(devices),
                          std::move(policy), max_bytes);
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

ShardedHashMap ShardedHashMap::from_bytes(Tensor const& bytes, std::vector<Device> devices,
                                          std::optional<ShardPolicy> policy,
                                          std::optional<std::uint64_t> max_bytes) {
    Tensor const file = map::check_bytes(bytes);
    auto const count = static_cast<std::size_t>(file.size());
    std::uint64_t const limit = load_limit(count, max_bytes);
    Images images = read_images(static_cast<unsigned char const*>(file.data()), count);
    if (devices.empty()) {
        devices = cpu_devices(images.tables.size());
    }
    sharded::check_devices(devices);
    Saved saved = build_shards(std::move(images), devices, limit);
    if (!policy) {
        if (saved.policy != "hash" && saved.policy != "mod") {
            throw ValueError("policy: the table was saved with a custom policy, \"" + saved.policy +
                             "\"; pass a policy");
        }
        policy = policy_from_name(saved.policy);
    }
    sharded::check_policy(*policy, devices);
    if (fits(saved, *policy, devices.size())) {
        return ShardedHashMap(std::make_unique<Impl>(
            std::move(saved.key), std::move(saved.values), std::move(devices), std::move(*policy),
            std::move(saved.shards), std::move(saved.ledgers)));
    }
    if (!saved.ledgers.empty()) {
        throw ValueError(
            "devices: a bounded table loads only onto as many shards as it was saved from, " +
            std::to_string(saved.shards.size()) + ", with the same policy; got " +
            std::to_string(devices.size()) +
            (devices.size() == saved.shards.size() ? " and another policy" : ""));
    }
    return reroute(saved, std::move(devices), std::move(*policy), limit);
}

}  // namespace tensorhash
