// The last step of paths that find pairs in the order of coordinates: groups in the order of rows, and their mirrors.
#pragma once

#include <algorithm>
#include <span>

#include "coords/question.hpp"
#include "coords/row_order.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::coords {

/// Work (rows times columns) below which a second thread costs more than it brings.
inline constexpr std::size_t kSerialWork = std::size_t{1} << 15;

/// Brings groups into row order, and makes the mirrored half of a symmetric map.
class Finish {
public:
    Finish(Answer& answer, std::size_t out_rows, bool in_order)
        : offsets_(answer.offsets.as<std::int64_t>()),
          in_(answer.in_maps.as_mutable<std::int32_t>().data()),
          out_(answer.out_maps.as_mutable<std::int32_t>().data()), out_rows_(out_rows),
          in_order_(in_order) {}

    /// Groups [0, swept) were written; with `mirror`, group all - 1 - k is group k exchanged, and the middle is identity.
    void run(std::size_t swept, bool mirror) {
        if (mirror) fill_identity(swept);
        if (in_order_ && !mirror) return;
        auto const threads = static_cast<std::size_t>(num_threads());
        bool const small = offsets_.back() < std::int64_t{kSerialWork};
        std::size_t const tasks = small ? 1 : std::min(swept, threads * 4);
        runtime::run_tasks(tasks, [&](std::size_t task) {
            RowOrder order(in_order_ ? 0 : out_rows_);
            for (std::size_t k = task; k < swept; k += tasks) {
                if (mirror) exchange(k, 2 * swept - k, order);
                if (!in_order_) reorder(k, order);
            }
        });
    }

private:
    void fill_identity(std::size_t group) {
        std::int64_t const begin = offsets_[group];
        runtime::for_ranges(out_rows_, runtime::kGrain, [&](std::size_t from, std::size_t to) {
            for (std::size_t row = from; row < to; ++row) {
                in_[begin + static_cast<std::int64_t>(row)] = static_cast<std::int32_t>(row);
                out_[begin + static_cast<std::int64_t>(row)] = static_cast<std::int32_t>(row);
            }
        });
    }

    void exchange(std::size_t from, std::size_t to, RowOrder& order) {
        std::int64_t const count = offsets_[from + 1] - offsets_[from];
        if (in_order_) {
            std::copy_n(in_ + offsets_[from], count, out_ + offsets_[to]);
            std::copy_n(out_ + offsets_[from], count, in_ + offsets_[to]);
            return;
        }
        for (std::int64_t at = offsets_[from]; at < offsets_[from + 1]; ++at) {
            order.add(in_[at], out_[at]);
        }
        order.flush(out_ + offsets_[to], in_ + offsets_[to]);
    }

    void reorder(std::size_t group, RowOrder& order) {
        for (std::int64_t at = offsets_[group]; at < offsets_[group + 1]; ++at) {
            order.add(out_[at], in_[at]);
        }
        order.flush(out_ + offsets_[group], in_ + offsets_[group]);
    }

    std::span<std::int64_t const> offsets_;
    std::int32_t* in_;
    std::int32_t* out_;
    std::size_t out_rows_;
    bool in_order_;
};

}  // namespace tensorhash::coords
