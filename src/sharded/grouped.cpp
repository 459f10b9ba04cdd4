// Answers back to the caller's rows, in one pass over them.
#include "sharded/grouped.hpp"

namespace tensorhash::sharded {

Grouped Grouped::with_indices(Routed const& routed) {
    Grouped grouped(routed);
    grouped.out_.indices = Tensor::empty(with_rows(routed.rows(), {}), Dtype::Int64);
    return grouped;
}

void Grouped::give(std::size_t begin, std::size_t end) noexcept {
    auto const* const local = reinterpret_cast<std::int32_t const*>(numbers_.data());
    auto* const global = static_cast<std::int64_t*>(out_.indices.data());
    for (std::size_t row = begin; row < end; ++row) {
        global[row] = local[row];  // shard 0: the same number, and -1 is -1
    }
}

Located Grouped::located() noexcept {
    if (routed_.shards() == 1) {
        runtime::for_ranges(routed_.rows(), runtime::kGrain,
                            [&](std::size_t begin, std::size_t end) { give(begin, end); });
        return given();
    }
    auto const* const local = reinterpret_cast<std::int32_t const*>(numbers_.data());
    auto* const global = static_cast<std::int64_t*>(out_.indices.data());
    auto* const mask = static_cast<unsigned char*>(out_.mask.data());
    routed_.for_rows([&](std::size_t row, std::size_t shard, std::size_t place) {
        std::int32_t const here = local[place];
        global[row] = here < 0 ? -1 : global_index(static_cast<std::int64_t>(shard), here);
        mask[row] = mask_.data()[place];
    });
    return given();
}

Tensor Grouped::mask() noexcept {
    auto* const mask = static_cast<unsigned char*>(out_.mask.data());
    if (routed_.shards() > 1) {
        routed_.for_rows([&](std::size_t row, std::size_t, std::size_t place) {
            mask[row] = mask_.data()[place];
        });
    }
    return out_.mask;
}

}  // namespace tensorhash::sharded
