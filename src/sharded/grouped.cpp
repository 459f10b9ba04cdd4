// Answers back to the caller's rows, in one pass over them.
#include "sharded/grouped.hpp"

namespace tensorhash::sharded {

Grouped Grouped::with_indices(Routed const& routed) {
    Grouped grouped(routed);
    grouped.out_.indices = Tensor::empty(with_rows(routed.rows(), {}), Dtype::Int64);
    return grouped;
}

Located Grouped::located() noexcept {
    bool const several = routed_.shards() > 1;
    auto const* const local = reinterpret_cast<std::int32_t const*>(numbers_.data());
    auto* const global = static_cast<std::int64_t*>(out_.indices.data());
    auto* const mask = static_cast<unsigned char*>(out_.mask.data());
    routed_.for_rows([&](std::size_t row, std::size_t shard, std::size_t place) {
        std::int32_t const here = local[place];
        global[row] = here < 0 ? -1 : global_index(static_cast<std::int64_t>(shard), here);
        if (several) {  // a single shard has written the caller's own
            mask[row] = mask_.data()[place];
        }
    });
    return std::move(out_);
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
