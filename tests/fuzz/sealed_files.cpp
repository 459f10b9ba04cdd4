// Damaged files with valid checksums, as an attacker would write them. The reader must never crash,
// never take memory out of proportion to the file, and never return an unsound or a different
// table.
#include <optional>
#include <stdexcept>

#include "damage.hpp"
#include "fuzz.hpp"
#include "support/files.hpp"
#include "support/twin.hpp"

namespace th_test {
namespace {

using tensorhash::BoundedHashMap;
using tensorhash::Eviction;
using tensorhash::ShardedHashMap;

constexpr std::size_t kHead = 40;  // of a bounded table's file

template <class Map>
void require_proportion(Map const& map, std::size_t file_bytes) {
    if (map.memory_usage().total() > tensorhash::load_limit(file_bytes, {}))
        throw std::runtime_error(std::to_string(map.memory_usage().total()) +
                                 " bytes for a file of " + std::to_string(file_bytes));
}

/// Offset of the capacity in a table's image.
std::size_t capacity_at(std::string const& bytes) {
    std::size_t at = 16;
    std::uint32_t columns = 0;
    std::memcpy(&columns, bytes.data() + 12, 4);
    for (std::uint64_t element = 0; element <= columns; ++element) {
        std::uint32_t rank = 0;
        std::memcpy(&rank, bytes.data() + at + 4, 4);
        at += 8 + 8 * std::size_t{rank};
    }
    return at;
}

bool has_bools(HashMap const& map) {
    bool any = map.key_element().dtype == Dtype::Bool;
    for (Element const& element : map.value_elements()) any = any || element.dtype == Dtype::Bool;
    return any;
}

/// Checks an accepted file: its table is sound and matches the file.
void require_faithful(HashMap const& map, std::string file) {
    map.validate();
    require_proportion(map, file.size());
    std::string const again = bytes_of(map.to_bytes());
    if (has_bools(map)) {  // a byte of 2 was read as 1
        if (bytes_of(HashMap::from_bytes(as_tensor(again)).to_bytes()) != again)
            throw std::runtime_error("a table of bools was read as something else");
        return;
    }
    // The reader ignores a capacity that is out of proportion.
    put(file, capacity_at(file), map.capacity());
    seal(file);
    if (again != file) throw std::runtime_error("a table was read as something else");
}

void fuzz_table_file(std::vector<std::string> const& tables, Random& random) {
    std::string damaged =
        mutated(tables[random.below(tables.size())], tables[random.below(tables.size())], random);
    seal(damaged);
    try {
        require_faithful(HashMap::from_bytes(as_tensor(damaged)), damaged);
    } catch (tensorhash::FormatError const&) {
    }
}

Tensor some_keys(Random& random) {
    return make_keys({Dtype::Int64, {}}, random_ids(1 + random.below(20), 40, random.next()));
}

std::vector<std::string> saved_bounded_tables(Random& random) {
    std::vector<std::string> out;
    for (int i = 0; i < 12; ++i) {
        Eviction const eviction = i % 2 == 0 ? Eviction::Lru : Eviction::Score;
        BoundedHashMap table(Capacity{1 + static_cast<std::int64_t>(random.below(20))},
                             {Dtype::Int64, {}}, {{Dtype::Int16, {}}}, eviction);
        for (int batch = 0; batch < 4; ++batch) {
            Tensor keys = some_keys(random);
            table.activate(keys, eviction == Eviction::Lru ? Tensor{} : keys);
            if (batch == 2) table.erase(some_keys(random));
        }
        out.push_back(bytes_of(table.to_bytes()));
    }
    return out;
}

/// Damages the head or the table after it, and seals both.
std::string damaged_bounded(std::vector<std::string> const& tables, Random& random) {
    std::string const& whole = tables[random.below(tables.size())];
    std::string const& other = tables[random.below(tables.size())];
    std::string head = whole.substr(0, kHead), body = whole.substr(kHead);
    if (random.one_in(3)) {
        head = mutated(head, other, random);
        seal(head);
    } else {
        body = mutated(body, other.substr(kHead), random);
        seal(body);
    }
    return head + body;
}

void fuzz_bounded_file(std::vector<std::string> const& tables, Random& random) {
    std::string const damaged = damaged_bounded(tables, random);
    try {
        BoundedHashMap table = BoundedHashMap::from_bytes(as_tensor(damaged));
        table.validate();
        require_proportion(table, damaged.size());
        // It must keep working: the clock advances and entries leave.
        if (table.key_element() != Element{Dtype::Int64, {}}) return;
        std::uint64_t const clock = table.clock();
        Tensor const keys = some_keys(random);
        table.activate(keys, table.eviction() == Eviction::Lru ? Tensor{} : keys);
        table.validate();
        if (table.clock() != clock + 1) throw std::runtime_error("the clock stands still");
    } catch (tensorhash::FormatError const&) {
    }
}

void fuzz_sharded_file(std::vector<std::string> const& tables,
                       std::vector<std::string> const& bounded, Random& random) {
    std::string bytes("THSHRD\n\x1a", 8);
    auto const number = [&](std::uint64_t value) {
        bytes.append(reinterpret_cast<char const*>(&value), sizeof(value));
    };
    std::uint64_t const shards = 1 + random.below(3);
    number(1);
    number(4);
    bytes += "hash";
    number(shards);
    std::string const& one = tables[random.below(tables.size())];
    for (std::uint64_t shard = 0; shard < shards; ++shard) {
        std::string image = random.one_in(4) ? damaged_bounded(bounded, random) : one;
        if (random.one_in(3)) {
            image = mutated(image, one, random);
            seal(image);
        }
        number(image.size());
        bytes += image;
    }
    if (random.one_in(3)) bytes = mutated(bytes, one, random);
    try {
        ShardedHashMap map = ShardedHashMap::from_bytes(as_tensor(bytes));
        map.validate();
        require_proportion(map, bytes.size());
    } catch (tensorhash::FormatError const&) {
    } catch (tensorhash::ValueError const&) {  // the policy or the devices do not match the file
    }
}

}  // namespace

void fuzz_sealed_files(std::uint64_t seed, std::uint64_t mutations, Tally& tally) {
    Random random(seed + 1);
    std::vector<std::string> const tables = saved_tables(random);
    std::vector<std::string> const bounded = saved_bounded_tables(random);
    for (std::uint64_t i = 0; i < mutations; ++i) {
        ++tally.mutations;
        try {
            if (i % 4 == 2)
                fuzz_bounded_file(bounded, random);
            else if (i % 4 == 3)
                fuzz_sharded_file(tables, bounded, random);
            else
                fuzz_table_file(tables, random);
        } catch (std::exception const& error) {
            throw std::runtime_error("sealed file number " + std::to_string(i) + ": " +
                                     error.what());
        }
    }
}

}  // namespace th_test
