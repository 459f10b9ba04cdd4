// Saves and loads a StringIndex: magic, version, number of strings, sizes, bytes, checksum. All
// sizes are checked against the file before memory is allocated.
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/format.hpp"
#include "io/magic.hpp"
#include "map/arguments.hpp"
#include "runtime/seed.hpp"
#include "strings/string_index_impl.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"
#include "tensorhash/strings.hpp"

namespace tensorhash {
namespace {

using strings::StringTable;

constexpr char kMagic[8] = {'T', 'H', 'S', 'T', 'R', '\r', '\n', '\x1a'};
constexpr std::uint32_t kVersion = 1;

struct Head {
    char magic[8];
    std::uint32_t version;
    std::uint32_t zero;
    std::uint64_t strings;
    std::uint64_t bytes;
};
static_assert(sizeof(Head) == 32);

void write(io::Sink& sink, StringTable const& table) {
    io::Checksum checksum;
    auto const put = [&](void const* data, std::size_t bytes) {
        checksum.add(data, bytes);
        sink.write(data, bytes);
    };
    Head head{{}, kVersion, 0, table.size(), table.bytes()};
    std::memcpy(head.magic, kMagic, sizeof(kMagic));
    put(&head, sizeof(head));
    std::vector<std::uint64_t> sizes(table.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = table.string(i).size();
    put(sizes.data(), sizes.size() * sizeof(std::uint64_t));
    // The arena has the strings in order, without gaps.
    put(table.size() == 0 ? "" : table.string(0).data(), table.bytes());
    std::uint64_t const sum = checksum.value();
    sink.write(&sum, sizeof(sum));
}

[[noreturn]] void fail(std::string const& what) {
    throw FormatError("not a valid file of a StringIndex: " + what);
}

/// Magic, version, sizes and checksum, in the order that gives the most useful message.
Head read_head(unsigned char const* bytes, std::size_t count) {
    Head head;
    if (!io::begins_with(bytes, count, kMagic)) {
        fail(count == 0 ? "it is empty" : "it does not start with \"THSTR\"");
    }
    if (count < sizeof(head) + sizeof(std::uint64_t)) fail("it ends within the head");
    std::memcpy(&head, bytes, sizeof(head));
    if (head.version != kVersion) {
        fail(io::wrong_version(head.version, kVersion));
    }
    std::uint64_t const body = count - sizeof(head) - sizeof(std::uint64_t);
    if (head.strings > strings::kMostStrings || head.strings * 8 > body ||
        head.bytes != body - head.strings * 8) {
        fail("it has " + std::to_string(count) + " bytes, which do not fit " +
             std::to_string(head.strings) + " strings of " + std::to_string(head.bytes) + " bytes");
    }
    std::uint64_t stored;
    std::memcpy(&stored, bytes + count - sizeof(stored), sizeof(stored));
    io::Checksum checksum;
    checksum.add(bytes, count - sizeof(stored));
    if (checksum.value() != stored) {
        fail("its checksum does not match: it is truncated or damaged");
    }
    return head;
}

/// Buckets, entries and bytes of a table with this content.
std::uint64_t memory_for(Head const& head) { return head.strings * (64 + 4 * 8) + head.bytes; }

void fill(StringTable& table, Head const& head, unsigned char const* body) {
    table.reserve(head.strings, head.bytes);
    auto const* at = reinterpret_cast<char const*>(body + head.strings * 8);
    std::uint64_t left = head.bytes;
    for (std::uint64_t i = 0; i < head.strings; ++i) {
        std::uint64_t size;
        std::memcpy(&size, body + i * 8, 8);
        if (size > left) fail("string " + std::to_string(i) + " ends after the file");
        if (table.insert(table.query({at, size})) != i) {
            fail("string " + std::to_string(i) + " is there twice");
        }
        at += size;
        left -= size;
    }
    if (left != 0) fail("it has bytes that belong to no string");
}

}  // namespace

void StringIndex::save(std::string const& file_name) const {
    std::shared_lock const guard(impl_->lock);
    io::replace_file(file_name, [&](io::Sink& sink) { write(sink, impl_->table); });
}

Tensor StringIndex::to_bytes() const {
    std::shared_lock const guard(impl_->lock);
    io::MemorySink sink;
    write(sink, impl_->table);
    return sink.take();
}

StringIndex StringIndex::from_bytes(Tensor const& bytes, std::optional<std::uint64_t> max_bytes) {
    Tensor const file = map::check_bytes(bytes);
    auto const count = static_cast<std::size_t>(file.size());
    auto const* const at = static_cast<unsigned char const*>(file.data());
    Head const head = read_head(at, count);
    io::require_within(memory_for(head), load_limit(count, max_bytes));
    auto impl = std::make_unique<Impl>(strings::string_secret_of(runtime::new_seed()));
    fill(impl->table, head, at + sizeof(head));
    return StringIndex(std::move(impl));
}

StringIndex StringIndex::load(std::string const& file_name,
                              std::optional<std::uint64_t> max_bytes) {
    try {
        return from_bytes(io::read_file(file_name, max_bytes), max_bytes);
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

}  // namespace tensorhash
