// All rows in order of insertion, in memory with spare room. A view shows the rows of its time:
// appending changes no view.
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

    /// The rows followed by `fresh`, which are int32. The buffer itself changes only in adopt().
    /// ValueError that names `argument` if int32 could no longer number the rows.
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
