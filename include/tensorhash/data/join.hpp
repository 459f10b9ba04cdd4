// Joins of two arrays by equal keys. Results are row numbers, so that any column can be gathered.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::data {

enum class How : std::uint8_t {
    Inner,  ///< all pairs of rows with equal keys
    Left,   ///< and the left rows without a partner
    Full,   ///< and, after them, the right rows without a partner
    Semi,   ///< left rows with a partner, once each, with the first partner
    Anti,   ///< left rows without a partner
};

/// Throws a ValueError that lists the valid names: "inner", "left", "full", "semi", "anti".
TH_API How how_from_name(std::string_view name);

/// Rows that belong together, ordered by left row, then by right row. -1 stands for no row.
struct JoinedRows {
    Tensor left;   ///< int64 [P]
    Tensor right;  ///< int64 [P]
};

/// Matches of N queries as compressed rows: those of query i are rows[offsets[i]] up to
/// rows[offsets[i + 1]], ascending.
struct Matches {
    Tensor offsets;  ///< int64 [N + 1]
    Tensor rows;     ///< int64
};

/// The right side of a join, built once. Never changes; many threads may use it at once. Keys
/// compare as in tables: -0.0 is 0.0, and all NaNs are equal.
class TH_API JoinIndex {
public:
    explicit JoinIndex(Tensor const& right);
    JoinIndex(JoinIndex&&) noexcept;
    JoinIndex& operator=(JoinIndex&&) noexcept;
    ~JoinIndex();

    /// int64 [N]: how many right rows equal each left row.
    Tensor count(Tensor const& left) const;
    JoinedRows join(Tensor const& left, How how = How::Inner) const;
    /// int64 [N]: the first equal right row of each left row, or -1.
    Tensor first(Tensor const& left) const;
    Matches matches(Tensor const& left) const;

    Element const& key_element() const noexcept;
    /// Rows, and distinct rows among them.
    std::int64_t rows() const noexcept;
    std::int64_t distinct() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// JoinIndex(right).join(left, how).
TH_API JoinedRows join(Tensor const& left, Tensor const& right, How how = How::Inner);

}  // namespace tensorhash::data
