// Writes and reads the native file. Little-endian only, like the whole library.
#include "io/format.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "io/checksum.hpp"
#include "io/magic.hpp"
#include "map/arguments.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::io {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMaxRank = 63;

[[noreturn]] void fail(std::string const& what) {
    throw FormatError("not a valid .thash file: " + what);
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

/// Checks magic, version and checksum, in the order that gives the most useful message.
void check_envelope(unsigned char const* bytes, std::size_t count) {
    if (begins_with(bytes, count, kBoundedMagic)) {
        throw FormatError("a file of a bounded table; BoundedHashMap's load reads it");
    }
    if (begins_with(bytes, count, kShardedMagic)) {
        throw FormatError("a file of a sharded table; ShardedHashMap's load reads it");
    }
    if (!begins_with(bytes, count, kTableMagic)) {
        fail(count == 0 ? "it is empty" : "it does not start with \"THASH\"");
    }
    if (count < sizeof(kTableMagic) + sizeof(std::uint32_t) + sizeof(std::uint64_t)) {
        fail("it ends within the header");
    }
    std::uint32_t version;
    std::memcpy(&version, bytes + sizeof(kTableMagic), sizeof(version));
    if (version != kVersion) {
        fail(wrong_version(version, kVersion));
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
                 backend::TableImage const& table) {
    Writer out(sink);
    out.bytes(kTableMagic, sizeof(kTableMagic));
    out.number(kVersion);
    out.number(static_cast<std::uint32_t>(values.size()));
    out.element(key);
    for (Element const& element : values) {
        out.element(element);
    }
    out.number(table.capacity);
    out.number(std::uint64_t{table.top});
    out.number(std::uint64_t{table.free.size()});
    out.bytes(table.free.data(), table.free.size_bytes());
    out.bytes(table.keys, table.top * key.bytes());
    for (std::size_t i = 0; i < values.size(); ++i) {
        out.bytes(table.values[i], table.top * values[i].bytes());
    }
    out.finish();
}

std::size_t table_bytes(Element const& key, std::vector<Element> const& values,
                        backend::TableImage const& table) {
    auto const element_bytes = [](Element const& element) {
        return 2 * sizeof(std::uint32_t) + element.shape.size() * sizeof(std::int64_t);
    };
    std::size_t bytes = sizeof(kTableMagic) + 2 * sizeof(std::uint32_t) + element_bytes(key) +
                        4 * sizeof(std::uint64_t) + table.free.size_bytes() +
                        table.top * key.bytes();
    for (Element const& element : values) {
        bytes += element_bytes(element) + table.top * element.bytes();
    }
    return bytes;
}

namespace {

/// Reads the elements of all columns, then the sizes. Checks the sizes against each other and
/// against the bytes that are left.
Image read_sizes(Reader& in, std::uint32_t columns) {
    Image image;
    image.key = in.element();
    map::check_key_element(image.key);
    for (std::uint32_t i = 0; i < columns; ++i) {
        image.values.push_back(in.element());
        map::check_value_element(image.values.back(), i);
    }
    image.capacity = in.number<std::uint64_t>("sizes");
    image.top = in.number<std::uint64_t>("sizes");
    image.free_count = in.number<std::uint64_t>("sizes");
    // Fewer than 2^32 columns of less than 2^31 bytes: the sum cannot overflow.
    std::uint64_t row_bytes = image.key.bytes();
    for (Element const& element : image.values) {
        row_bytes += element.bytes();
    }
    if (image.capacity > table::kMaxEntries || image.top > image.capacity ||
        image.free_count > image.top || in.left() / row_bytes < image.top ||
        in.left() != image.free_count * sizeof(std::uint32_t) + image.top * row_bytes) {
        fail("its sizes contradict each other");
    }
    image.body = in.bytes(in.left(), "rows");
    return image;
}

/// a + b, or UINT64_MAX on overflow.
std::uint64_t sum_or_max(std::uint64_t a, std::uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

}  // namespace

Image read_image(unsigned char const* bytes, std::size_t count) {
    check_envelope(bytes, count);
    Reader in(bytes, count - sizeof(std::uint64_t));
    in.bytes(sizeof(kTableMagic) + sizeof(kVersion), "header");
    auto const columns = in.number<std::uint32_t>("header");
    try {
        return read_sizes(in, columns);
    } catch (FormatError const&) {
        throw;
    } catch (Error const& error) {
        fail(error.what());
    }
}

std::uint64_t memory_of(std::span<Image const> images) {
    std::uint64_t bytes = 0;
    for (Image const& image : images) {
        bytes = sum_or_max(bytes, image.memory(image.capacity));
    }
    return bytes;
}

bool fits_with_capacity(std::span<Image const> images, std::uint64_t limit) {
    std::uint64_t least = 0;
    for (Image const& image : images) {
        least = sum_or_max(least, image.memory(image.top));
    }
    require_within(least, limit);
    return memory_of(images) <= limit;
}

void require_within(std::uint64_t bytes, std::uint64_t limit) {
    if (bytes > limit) {
        throw FormatError("a table of " + std::to_string(bytes) +
                          " bytes, more than max_bytes=" + std::to_string(limit) +
                          "; if you trust its writer, pass max_bytes=" + std::to_string(bytes));
    }
}

template <class AnyTable>
void fill_table(AnyTable& table, Image const& image) {
    std::vector<std::uint32_t> free(image.free_count);
    if (!free.empty()) {
        std::memcpy(free.data(), image.body, image.free_count * sizeof(std::uint32_t));
    }
    backend::TableImage content;
    content.capacity = image.capacity;
    content.top = static_cast<std::uint32_t>(image.top);
    content.free = free;
    content.rows = image.top;
    content.keys = image.body + image.free_count * sizeof(std::uint32_t);
    unsigned char const* at = content.keys + image.top * image.key.bytes();
    for (Element const& element : image.values) {
        content.values.push_back(at);
        at += image.top * element.bytes();
    }
    try {
        table.from_cpu(content);
    } catch (CorruptTable const& error) {
        fail(error.what());
    }
}

template void fill_table(backend::TableBackend&, Image const&);
template void fill_table(table::Table&, Image const&);

std::unique_ptr<backend::TableBackend> build_table(Image const& image, std::uint64_t rows) {
    auto table = backend::cpu_backend().make_table({image.key, image.values, rows}, Device{});
    fill_table(*table, image);
    return table;
}

}  // namespace tensorhash::io
