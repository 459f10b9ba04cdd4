// Groups rows by key. A new table gives buffer indices in order of first occurrence, on any number
// of threads.
#include "coords/rows/row_groups.hpp"

namespace tensorhash::coords {

KeyGroups::KeyGroups(std::span<std::uint64_t const> keys) : table_({Dtype::UInt64, {}}, {}, 0) {
    std::vector<std::uint32_t> group_of_row(keys.size());
    std::vector<unsigned char> mask(keys.size());
    table_.activate(reinterpret_cast<table::Bytes>(keys.data()), keys.size(),
                    {group_of_row.data(), mask.data()}, table::KeySource::Private);
    groups_ = group_rows(std::span<std::uint32_t const>(group_of_row), table_.size());
}

}  // namespace tensorhash::coords
