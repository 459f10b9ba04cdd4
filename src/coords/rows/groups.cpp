// Grouping by key: a fresh table numbers its keys in order of first occurrence, on any number of threads.
#include "coords/rows/groups.hpp"

namespace tensorhash::coords {

KeyGroups::KeyGroups(std::span<std::uint64_t const> keys) : table_({Dtype::UInt64, {}}, {}, 0) {
    std::vector<std::uint32_t> numbers(keys.size());
    std::vector<unsigned char> mask(keys.size());
    table_.activate(reinterpret_cast<table::Bytes>(keys.data()), keys.size(),
                    {numbers.data(), mask.data()}, table::KeySource::Private);
    groups_ = group_rows(std::span<std::uint32_t const>(numbers), table_.size());
}

}  // namespace tensorhash::coords
