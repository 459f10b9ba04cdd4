// The last steps of paths that find pairs in the order of coordinates: where groups lie, their order, their mirrors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coords/kernel_map/question.hpp"
#include "coords/kernel_map/row_order.hpp"

namespace tensorhash::coords {

/// Work (rows times columns) below which a second thread costs more than it brings.
inline constexpr std::size_t kSerialWork = std::size_t{1} << 15;

/// Which groups a path finds itself. With `mirror` they are the first half: the middle one is the identity, and group
/// all - 1 - k is group k exchanged.
struct Swept {
    std::size_t groups = 0;
    bool mirror = false;

    Swept(Question const& question, bool repeated)
        : groups(question.groups),
          mirror(question.mirrored() && !repeated && question.groups == question.all) {
        if (mirror) groups = question.all / 2;
    }
};

/// An answer with room for the pairs: `totals` are the counts of the groups that were swept.
Answer make_room(Question const& question, Swept swept, std::vector<std::int64_t> const& totals);

/// Brings the groups that were swept into the order of rows, unless they are, and makes their mirrors.
void finish_groups(Answer& answer, std::size_t out_rows, Swept swept, bool in_order);

}  // namespace tensorhash::coords
