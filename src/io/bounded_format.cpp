// Writes and reads the file of a bounded table.
#include "io/bounded_format.hpp"

#include <cstring>
#include <string>

#include "io/checksum.hpp"
#include "io/magic.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::io {
namespace {

constexpr std::uint32_t kVersion = 1;

struct Head {
    unsigned char magic[8];
    std::uint32_t version;
    std::uint32_t eviction;
    std::uint64_t clock;
    std::uint64_t uses;
    std::uint64_t checksum;
};
static_assert(sizeof(Head) == kHeadBytes);

std::uint64_t checksum_of(Head const& head) {
    Checksum sum;
    sum.add(&head, offsetof(Head, checksum));
    return sum.value();
}

[[noreturn]] void fail(std::string const& what) {
    throw FormatError("not a valid file of a bounded table: " + what);
}

}  // namespace

void write_head(Sink& sink, BoundedHead const& head) {
    Head out{{}, kVersion, static_cast<std::uint32_t>(head.eviction), head.clock, head.uses, 0};
    std::memcpy(out.magic, kBoundedMagic, sizeof(kBoundedMagic));
    out.checksum = checksum_of(out);
    sink.write(&out, sizeof(out));
}

BoundedHead read_head(unsigned char const*& bytes, std::size_t& count) {
    Head head;
    if (!begins_with(bytes, count, kBoundedMagic)) {
        fail(count == 0 ? "it is empty" : "it does not start with \"THBND\"");
    }
    if (count < sizeof(head)) {
        fail("it ends within the head");
    }
    std::memcpy(&head, bytes, sizeof(head));
    if (head.version != kVersion) {
        fail(wrong_version(head.version, kVersion));
    }
    if (head.checksum != checksum_of(head) ||
        head.eviction > static_cast<std::uint32_t>(Eviction::Score)) {
        fail("the checksum of its head does not match: it is damaged");
    }
    bytes += sizeof(head);
    count -= sizeof(head);
    return {static_cast<Eviction>(head.eviction), head.clock, head.uses};
}

void write_bounded(Sink& sink, Element const& key, std::vector<Element> const& elements,
                   table::BoundedState const& state) {
    write_head(sink, {state.ledger.eviction, state.ledger.clock, state.ledger.uses});
    write_table(sink, key, elements, state.table.to_cpu());
}

BoundedImage read_bounded(unsigned char const* bytes, std::size_t count) {
    BoundedHead const head = read_head(bytes, count);
    if (head.clock > table::kLastCountOfFile || head.uses > table::kLastCountOfFile) {
        throw FormatError("not a valid file of a bounded table: it has a clock of " +
                          std::to_string(head.clock) + " and " + std::to_string(head.uses) +
                          " uses, more than a table can have");
    }
    BoundedImage image{head, read_image(bytes, count)};
    std::vector<Element> const& values = image.table.values;
    if (values.size() < 2 || values[values.size() - 2] != table::kScore ||
        values.back() != table::kUse || image.table.capacity == 0) {
        throw FormatError(
            "not a valid file of a bounded table: it has no score and use columns, or no capacity");
    }
    return image;
}

RestoredBounded build_bounded(BoundedImage&& image) {
    Image& from = image.table;
    table::Table table(from.key, from.values, from.capacity);
    fill_table(table, from);
    from.values.resize(from.values.size() - 2);
    RestoredBounded made{std::move(from.key), std::move(from.values), std::move(table),
                         table::Ledger(image.head.eviction)};
    made.ledger.clock = image.head.clock;
    made.ledger.uses = image.head.uses;
    try {
        table::validate_uses({made.table, made.ledger});
    } catch (CorruptTable const& error) {
        throw FormatError("not a valid file of a bounded table: " + std::string(error.what()));
    }
    return made;
}

}  // namespace tensorhash::io
