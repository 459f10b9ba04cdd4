// Rows to the shards and answers back, in parallel.
#include "sharded/grouped.hpp"

#include "runtime/parallel.hpp"

namespace tensorhash::sharded {

Located Grouped::located(std::size_t shards) noexcept {
    auto* const global = static_cast<std::int64_t*>(out_.indices.data());
    for (std::size_t shard = 0; shard < shards; ++shard) {
        auto const* const local = reinterpret_cast<std::int32_t const*>(of(shard).numbers);
        auto const* const row = routed_.order() + routed_.begin(shard);
        runtime::for_ranges(
            routed_.rows(shard), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    global[row[i]] = local[i] < 0
                                         ? -1
                                         : global_index(static_cast<std::int64_t>(shard), local[i]);
                }
            });
    }
    mask();
    return std::move(out_);
}

Tensor Grouped::mask() noexcept {
    auto* const bytes = static_cast<unsigned char*>(out_.mask.data());
    runtime::for_ranges(routed_.rows(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            bytes[routed_.order()[i]] = mask_.data()[i];
        }
    });
    return out_.mask;
}

std::vector<GroupedColumn> grouped_columns(Routed const& routed, std::vector<Batch> const& batches,
                                           std::vector<Element> const& elements) {
    std::vector<GroupedColumn> columns;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        columns.emplace_back(routed, batches[i], elements[i].bytes());
    }
    return columns;
}

std::vector<std::vector<table::Bytes>> parts_of(std::vector<GroupedColumn> const& columns,
                                                Routed const& routed, std::size_t shards) {
    std::vector<std::vector<table::Bytes>> parts(shards);
    for (std::size_t shard = 0; shard < shards; ++shard) {
        for (GroupedColumn const& column : columns) {
            parts[shard].push_back(column.from(routed.begin(shard)));
        }
    }
    return parts;
}

}  // namespace tensorhash::sharded
