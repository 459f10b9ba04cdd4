// Checks offsets once, so that reading needs no checks.
#include "strings/offset_source.hpp"

#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::strings {

OffsetSource::OffsetSource(StringRows const& rows) {
    if (rows.offsets.dtype() != Dtype::Int64 || rows.offsets.rank() != 1 ||
        rows.offsets.size() < 1) {
        throw TypeError("offsets: expected int64 (N + 1,), got " +
                        std::string(name(rows.offsets.dtype())) + " " +
                        to_string(rows.offsets.shape()));
    }
    if (rows.bytes.dtype() != Dtype::UInt8 || rows.bytes.rank() != 1) {
        throw TypeError("bytes: expected uint8 (n,), got " + std::string(name(rows.bytes.dtype())) +
                        " " + to_string(rows.bytes.shape()));
    }
    offsets_ = rows.offsets.contiguous();
    bytes_ = rows.bytes.contiguous();
    rows_ = static_cast<std::size_t>(offsets_.size()) - 1;
    std::int64_t const size = bytes_.size();
    std::int64_t last = 0;
    for (std::int64_t const offset : offsets_.as<std::int64_t>()) {
        if (offset < last || offset > size) {
            throw ValueError("offsets: expected ascending numbers up to " + std::to_string(size) +
                             ", got " + std::to_string(offset) + " after " + std::to_string(last));
        }
        last = offset;
    }
}

void OffsetSource::read(std::size_t begin, std::size_t count, std::string_view* strings,
                        std::string& room) const {
    auto const* const offsets = static_cast<std::int64_t const*>(offsets_.data()) + begin;
    auto const* const bytes = static_cast<char const*>(bytes_.data());
    for (std::size_t i = 0; i < count; ++i) {
        strings[i] = {bytes + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
        if (offsets[i + 1] < std::int64_t{kBefore}) [[unlikely]]
            strings[i] = append_preceded(strings[i], room);
    }
}

}  // namespace tensorhash::strings
