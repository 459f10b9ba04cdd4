// Writing and reading the native file. Little-endian machines only, which is all that the library builds for.
#include "io/format.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "io/checksum.hpp"
#include "io/magic.hpp"
#include "runtime/memory.hpp"
#include "table/arguments.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::io {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMaxRank = 63;

[[noreturn]] void fail(std::string const& what) {
    throw FormatError("not a sound .thash file: " + what);
}

class Writer {
public:
    explicit Writer(Sink& sink) : sink_(sink) {}
    void bytes(void const* data, std::size_t count) {
        checksum_.add(data, count);
        sink_.write(data, count);
    }
    template <class T>
    void number(T value) {
        bytes(&value, sizeof(value));
    }
    void element(Element const& element) {
        number(static_cast<std::uint32_t>(element.dtype));
        number(static_cast<std::uint32_t>(element.shape.size()));
        for (std::int64_t const size : element.shape) {
            number(size);
        }
    }
    void finish() {
        std::uint64_t const sum = checksum_.value();
        sink_.write(&sum, sizeof(sum));
    }

private:
    Sink& sink_;
    Checksum checksum_;
};

class Reader {
public:
    Reader(unsigned char const* bytes, std::size_t count) : at_(bytes), left_(count) {}
    unsigned char const* bytes(std::size_t count, char const* what) {
        if (count > left_) {
            fail("it ends within the " + std::string(what));
        }
        unsigned char const* const here = at_;
        at_ += count;
        left_ -= count;
        return here;
    }
    template <class T>
    T number(char const* what) {
        T value;
        std::memcpy(&value, bytes(sizeof(value), what), sizeof(value));
        return value;
    }
    Element element() {
        Element element;
        auto const dtype = number<std::uint32_t>("dtypes");
        auto const rank = number<std::uint32_t>("dtypes");
        if (dtype > static_cast<std::uint32_t>(Dtype::Float64) || rank > kMaxRank) {
            fail("it has dtype " + std::to_string(dtype) + " of rank " + std::to_string(rank));
        }
        element.dtype = static_cast<Dtype>(dtype);
        for (std::uint32_t i = 0; i < rank; ++i) {
            element.shape.push_back(number<std::int64_t>("shapes"));
        }
        return element;
    }
    std::size_t left() const noexcept { return left_; }

private:
    unsigned char const* at_;
    std::size_t left_;
};

/// Magic, version and checksum, in the order that gives the most useful message.
void check_envelope(unsigned char const* bytes, std::size_t count) {
    if (begins_with(bytes, count, kBoundedMagic)) {
        throw FormatError("a file of a bounded table; BoundedHashMap's load reads it");
    }
    if (begins_with(bytes, count, kShardedMagic)) {
        throw FormatError(
            "a file of a sharded table; ShardedHashMap's load reads it, in C++ ShardedMap's");
    }
    if (!begins_with(bytes, count, kTableMagic)) {
        fail(count == 0 ? "it is empty" : "it does not begin as one");
    }
    if (count < sizeof(kTableMagic) + sizeof(std::uint32_t) + sizeof(std::uint64_t)) {
        fail("it ends within the header");
    }
    std::uint32_t version;
    std::memcpy(&version, bytes + sizeof(kTableMagic), sizeof(version));
    if (version != kVersion) {
        fail("it has version " + std::to_string(version) + ", this library reads version " +
             std::to_string(kVersion));
    }
    std::uint64_t stored;
    std::memcpy(&stored, bytes + count - sizeof(stored), sizeof(stored));
    Checksum checksum;
    checksum.add(bytes, count - sizeof(stored));
    if (checksum.value() != stored) {
        fail("its checksum does not match: it is truncated or damaged");
    }
}

}  // namespace

void write_table(Sink& sink, Element const& key, std::vector<Element> const& values,
                 table::Table const& table) {
    Writer out(sink);
    out.bytes(kTableMagic, sizeof(kTableMagic));
    out.number(kVersion);
    out.number(static_cast<std::uint32_t>(values.size()));
    out.element(key);
    for (Element const& element : values) {
        out.element(element);
    }
    out.number(table.capacity());
    out.number(std::uint64_t{table.top()});
    out.number(std::uint64_t{table.free_stack().size()});
    out.bytes(table.free_stack().data(), table.free_stack().size() * sizeof(std::uint32_t));
    out.bytes(table.keys().block->data(), table.top() * table.keys().row_bytes);
    for (table::Column const& column : table.values()) {
        out.bytes(column.block->data(), table.top() * column.row_bytes);
    }
    out.finish();
}

std::size_t table_bytes(Element const& key, std::vector<Element> const& values,
                        table::Table const& table) {
    auto const element_bytes = [](Element const& element) {
        return 2 * sizeof(std::uint32_t) + element.shape.size() * sizeof(std::int64_t);
    };
    std::size_t bytes = sizeof(kTableMagic) + 2 * sizeof(std::uint32_t) + element_bytes(key) +
                        4 * sizeof(std::uint64_t) +
                        table.free_stack().size() * sizeof(std::uint32_t) +
                        table.top() * table.keys().row_bytes;
    for (std::size_t i = 0; i < values.size(); ++i) {
        bytes += element_bytes(values[i]) + table.top() * table.values()[i].row_bytes;
    }
    return bytes;
}

Restored read_table(unsigned char const* bytes, std::size_t count) {
    check_envelope(bytes, count);
    Reader in(bytes, count - sizeof(std::uint64_t));
    in.bytes(sizeof(kTableMagic) + sizeof(kVersion), "header");
    auto const columns = in.number<std::uint32_t>("header");
    try {
        Element key = in.element();
        table::check_key_element(key);
        std::vector<Element> values;
        for (std::uint32_t i = 0; i < columns; ++i) {
            values.push_back(in.element());
            table::check_value_element(values.back(), i);
        }
        auto const capacity = in.number<std::uint64_t>("sizes");
        auto const top = in.number<std::uint64_t>("sizes");
        auto const free_count = in.number<std::uint64_t>("sizes");
        std::size_t row_bytes = key.bytes();
        for (Element const& element : values) {
            row_bytes += element.bytes();
        }
        if (capacity > table::kMaxEntries || top > capacity || free_count > top ||
            in.left() / row_bytes < top ||
            in.left() != free_count * sizeof(std::uint32_t) + top * row_bytes) {
            fail("its sizes contradict each other");
        }
        std::vector<std::uint32_t> free(free_count);
        if (free_count > 0) {
            std::memcpy(free.data(), in.bytes(free_count * sizeof(std::uint32_t), "free stack"),
                        free_count * sizeof(std::uint32_t));
        }
        table::Table table(key, values, capacity);
        runtime::copy_bytes(table.raw_keys().block->data(),
                            in.bytes(top * table.keys().row_bytes, "keys"),
                            top * table.keys().row_bytes);
        for (table::Column& column : table.raw_values()) {
            runtime::copy_bytes(column.block->data(), in.bytes(top * column.row_bytes, "values"),
                                top * column.row_bytes);
        }
        table.restore(static_cast<std::uint32_t>(top), std::move(free));
        return {std::move(key), std::move(values), std::move(table)};
    } catch (FormatError const&) {
        throw;
    } catch (Error const& error) {
        fail(error.what());
    }
}

}  // namespace tensorhash::io
