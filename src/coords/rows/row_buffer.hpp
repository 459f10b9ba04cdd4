// All rows in insertion order, in memory with spare room. Appending rows does not change existing
// views.
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

    /// The rows followed by the int32 rows `fresh`. rows() changes only in adopt().
    /// Throws ValueError that names `argument` if the row numbers would not fit int32.
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
