// Saves and loads HashMap and BoundedHashMap, as files and as bytes.
#include <optional>
#include <string>
#include <utility>

#include "io/bounded_format.hpp"
#include "io/file.hpp"
#include "io/format.hpp"
#include "map/bounded_impl.hpp"
#include "map/map_impl.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"

namespace tensorhash {

using map::Reading;
using table::with_hidden;

void HashMap::save(std::string const& file_name) const {
    Reading const guard = impl_->reading();
    io::replace_file(file_name, [&](io::Sink& sink) {
        io::write_table(sink, impl_->key, impl_->values, impl_->table->to_cpu());
    });
}

HashMap HashMap::load(std::string const& file_name, std::optional<std::uint64_t> max_bytes) {
    try {
        return from_bytes(io::read_file(file_name, max_bytes), max_bytes);
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

Tensor HashMap::to_bytes() const {
    Reading const guard = impl_->reading();
    io::MemorySink sink;
    io::write_table(sink, impl_->key, impl_->values, impl_->table->to_cpu());
    return sink.take();
}

HashMap HashMap::from_bytes(Tensor const& bytes, std::optional<std::uint64_t> max_bytes) {
    Tensor const file = map::check_bytes(bytes);
    auto const count = static_cast<std::size_t>(file.size());
    io::Image image = io::read_image(static_cast<unsigned char const*>(file.data()), count);
    std::uint64_t const limit = load_limit(count, max_bytes);
    std::uint64_t const rows =
        io::fits_with_capacity({&image, 1}, limit) ? image.capacity : image.top;
    auto table = io::build_table(image, rows, Device{});
    return HashMap(
        std::make_unique<Impl>(std::move(image.key), std::move(image.values), std::move(table)));
}

void BoundedHashMap::save(std::string const& file_name) const {
    Reading const guard = impl_->reading();
    io::replace_file(file_name, [&](io::Sink& sink) {
        io::write_bounded(sink, impl_->key, with_hidden(impl_->values), impl_->state());
    });
}

Tensor BoundedHashMap::to_bytes() const {
    Reading const guard = impl_->reading();
    io::MemorySink sink;
    io::write_bounded(sink, impl_->key, with_hidden(impl_->values), impl_->state());
    return sink.take();
}

BoundedHashMap BoundedHashMap::load(std::string const& file_name,
                                    std::optional<std::uint64_t> max_bytes) {
    try {
        return from_bytes(io::read_file(file_name, max_bytes), max_bytes);
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

BoundedHashMap BoundedHashMap::from_bytes(Tensor const& bytes,
                                          std::optional<std::uint64_t> max_bytes) {
    Tensor const file = map::check_bytes(bytes);
    auto const count = static_cast<std::size_t>(file.size());
    io::BoundedImage image =
        io::read_bounded(static_cast<unsigned char const*>(file.data()), count);
    io::require_within(io::memory_of({&image.table, 1}), load_limit(count, max_bytes));
    io::RestoredBounded made = io::build_bounded(std::move(image));
    return BoundedHashMap(std::make_unique<Impl>(std::move(made.key), std::move(made.values),
                                                 std::move(made.table), std::move(made.ledger),
                                                 Device{}));
}

}  // namespace tensorhash
