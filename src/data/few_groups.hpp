// Group-by with few groups, in one pass over the rows: while some threads number their rows, one
// adds its own.
#pragma once

#include <optional>

#include "data/reduce.hpp"

namespace tensorhash::data {

/// For narrow keys. None if there are more than `most` groups; at most kMostFewGroups. `groups` is
/// an estimate.
std::optional<Reduced> reduce_few(Plan const& plan, std::vector<Column> const& columns,
                                  KeyRows const& keys, step::HashSecret const& secret,
                                  double groups, std::size_t most);

/// The same without values: only numbers the rows.
std::optional<Numbering> number_few(KeyRows const& keys, step::HashSecret const& secret,
                                    double groups, std::size_t most);

}  // namespace tensorhash::data
