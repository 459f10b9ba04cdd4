// Damaged files: bits flipped, ends cut off, pieces moved, numbers in headers replaced. The checksum must catch every
// one; behind it, with the checksum put right, the reader must still never crash and never give an unsound table.
#include <fstream>
#include <stdexcept>

#include "fuzz.hpp"
#include "io/checksum.hpp"
#include "support/twin.hpp"

namespace th_test {
namespace {

/// Saved tables to damage: small ones, so that headers are a fair part of them.
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

/// A number that headers get wrong: small, huge, negative or anything.
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

Tensor as_tensor(std::string const& bytes) {
    Tensor out = Tensor::empty({static_cast<std::int64_t>(bytes.size())}, Dtype::UInt8);
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

/// Reads it from memory or, now and then, from a file.
HashMap read_back(std::string const& bytes, bool from_file, Scratch const& scratch) {
    if (!from_file) return HashMap::from_bytes(as_tensor(bytes));
    std::string name = scratch.file("damaged.thash");
    std::ofstream(name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return HashMap::load(name);
}

void seal(std::string& bytes) {
    if (bytes.size() < 8) return;
    tensorhash::io::Checksum checksum;
    checksum.add(bytes.data(), bytes.size() - 8);
    std::uint64_t sum = checksum.value();
    std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
}

/// Where the header says how much memory to take: an honest giant is no error, but no test for this machine either.
void tame_capacity(std::string& bytes) {
    std::size_t at = 16;
    std::uint32_t columns = 0;
    if (bytes.size() < at) return;
    std::memcpy(&columns, bytes.data() + 12, 4);
    for (std::uint64_t element = 0; element <= columns; ++element) {
        std::uint32_t rank = 0;
        if (at + 8 > bytes.size()) return;
        std::memcpy(&rank, bytes.data() + at + 4, 4);
        if (rank > 64) return;
        at += 8 + 8 * std::size_t{rank};
    }
    if (at + 8 > bytes.size()) return;
    std::uint64_t capacity = 0;
    std::memcpy(&capacity, bytes.data() + at, 8);
    if (capacity <= 2147483647u) capacity &= 0xfffff;
    std::memcpy(bytes.data() + at, &capacity, 8);
}

}  // namespace

void fuzz_files(std::uint64_t seed, int mutations, Scratch const& scratch, Tally& tally) {
    Random random(seed);
    std::vector<std::string> tables = saved_tables(random);
    for (int i = 0; i < mutations;) {
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

void fuzz_sealed_files(std::uint64_t seed, int mutations, Tally& tally) {
    Random random(seed + 1);
    std::vector<std::string> tables = saved_tables(random);
    for (int i = 0; i < mutations; ++i) {
        std::string damaged = mutated(tables[random.below(tables.size())],
                                      tables[random.below(tables.size())], random);
        tame_capacity(damaged);
        seal(damaged);
        ++tally.mutations;
        try {
            HashMap map = HashMap::from_bytes(as_tensor(damaged));
            map.validate();
            if (bytes_of(map.to_bytes()) != damaged)
                throw std::runtime_error("sealed file number " + std::to_string(i) +
                                         " was read as something else");
        } catch (tensorhash::FormatError const&) {
        }
    }
}

}  // namespace th_test
