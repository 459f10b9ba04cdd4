// Damaged files: flipped bits, cut ends, moved pieces, replaced header numbers. The checksum must
// catch every one.
#include <stdexcept>

#include "damage.hpp"
#include "fuzz.hpp"
#include "support/files.hpp"
#include "support/twin.hpp"

namespace th_test {

std::vector<std::string> saved_tables(Random& random) {
    std::vector<std::string> out;
    for (KeyKind const& kind : typed_kinds()) {
        Twin twin(static_cast<std::int64_t>(random.below(30)), kind.element,
                  {{Dtype::Float32, {2}}, {Dtype::Int16, {}}});
        twin.insert(random_ids(40, 60, random.next()), random.next());
        twin.erase(random_ids(20, 60, random.next()));
        out.push_back(bytes_of(twin.table.to_bytes()));
    }
    return out;
}

namespace {

/// A bad number for a header: small, huge, negative or random.
std::uint64_t odd_number(Random& random) {
    switch (random.below(5)) {
        case 0:
            return random.below(200);
        case 1:
            return ~random.below(200);
        case 2:
            return std::uint64_t{1} << random.below(64);
        case 3:
            return (std::uint64_t{1} << random.below(64)) - 1;
        default:
            return random.next();
    }
}

}  // namespace

std::string mutated(std::string bytes, std::string const& other, Random& random) {
    auto somewhere = [&] { return random.below(bytes.size()); };
    auto length = [&](std::size_t from) {
        return 1 + random.below(std::min<std::size_t>(64, bytes.size() - from));
    };
    switch (random.below(8)) {
        case 0: {
            std::size_t at = somewhere();
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
            break;
        }
        case 1:
            for (std::uint64_t n = 1 + random.below(10); n > 0; --n)
                bytes[somewhere()] = static_cast<char>(random.next());
            break;
        case 2:
            bytes.resize(somewhere());
            break;
        case 3: {  // a number in the header
            std::size_t at = 4 * random.below(std::min<std::size_t>(bytes.size(), 120) / 4 - 1);
            std::uint64_t number = odd_number(random);
            std::memcpy(bytes.data() + at, &number, random.one_in(2) ? 4 : 8);
            break;
        }
        case 4: {  // a piece of another file
            std::size_t at = somewhere(), n = length(at), from = random.below(other.size());
            bytes.replace(at, n, other.substr(from, n));
            break;
        }
        case 5:
            bytes.erase(somewhere(), 1 + random.below(32));
            break;
        case 6: {
            std::size_t at = somewhere();
            bytes.insert(at, bytes.substr(at, length(at)));
            break;
        }
        default: {
            std::size_t at = somewhere(), n = length(at);
            bytes.replace(at, n, n, random.one_in(2) ? '\0' : '\xff');
            break;
        }
    }
    return bytes;
}

namespace {

/// Reads the table from memory or from a file.
HashMap read_back(std::string const& bytes, bool from_file, Scratch const& scratch) {
    if (!from_file) return HashMap::from_bytes(as_tensor(bytes));
    std::string name = scratch.file("damaged.thash");
    write_file(name, bytes);
    return HashMap::load(name);
}

}  // namespace

void fuzz_files(std::uint64_t seed, std::uint64_t mutations, Scratch const& scratch, Tally& tally) {
    Random random(seed);
    std::vector<std::string> tables = saved_tables(random);
    for (std::uint64_t i = 0; i < mutations;) {
        std::string const& table = tables[random.below(tables.size())];
        std::string damaged = mutated(table, tables[random.below(tables.size())], random);
        if (damaged == table) continue;
        ++i;
        ++tally.mutations;
        bool accepted = true;
        try {
            read_back(damaged, i % 10 == 0, scratch);
        } catch (tensorhash::FormatError const&) {
            accepted = false;
        }
        if (accepted)
            throw std::runtime_error("damaged file number " + std::to_string(i) + " was accepted");
    }
}

}  // namespace th_test
