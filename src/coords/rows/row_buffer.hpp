// Every row that came, in order, in memory with room behind it. Views end where the rows ended: appending disturbs none.
#pragma once

#include <memory>
#include <string_view>

#include "coords/rows/rows.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::coords {

class RowBuffer {
public:
    explicit RowBuffer(std::uint32_t columns);

    /// int32 [rows, columns], read-only.
    CoordRows const& rows() const noexcept { return rows_; }

    /// The rows and `fresh`, which are int32, behind them. This buffer still ends where it did: see adopt. ValueError
    /// naming `argument` if rows could no longer be numbered in int32.
    struct Appended {
        std::shared_ptr<runtime::Block> block;
        CoordRows rows;
    };
    Appended with(CoordRows const& fresh, std::string_view argument) const;
    void adopt(Appended&& appended) noexcept;

private:
    std::shared_ptr<runtime::Block> block_;
    CoordRows rows_;
};

}  // namespace tensorhash::coords
