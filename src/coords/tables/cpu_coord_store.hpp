// The store of the coordinate tables in host memory: every inserted row, and an index over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backend/coords_backend.hpp"
#include "coords/rows/row_buffer.hpp"
#include "coords/tables/coord_index.hpp"

namespace tensorhash::coords {

class CpuCoordStore : public backend::CoordStore {
public:
    /// With 0 columns the first batch sets them.
    CpuCoordStore(backend::CoordStoreRules const& rules, std::uint32_t columns);

    backend::CoordStoreInfo info() const noexcept override;
    void set_columns(std::uint32_t columns) override;
    void insert(CoordRows const& rows, std::string_view argument) override;
    void expand(CoordRows const& base, CoordRows const& offsets) override;
    void clear() override;
    void grow_on_demand() noexcept override;
    Tensor search(CoordRows const& queries, SearchMode mode) const override;
    Tensor search(CoordRows const& queries, CoordRows const& offsets) const override;
    Tensor rows() const override;
    Tensor unique() const override;
    std::optional<backend::CoordSlots> slots() const override;

protected:
    /// Null until the columns are set.
    CoordIndex const* index() const noexcept { return index_ ? &*index_ : nullptr; }

private:
    CoordIndex make_index(CoordRows const& rows) const;
    /// Appends int32 rows and indexes them. Checks the range on the copy, because the caller's
    /// array may change during the call.
    void append(CoordRows const& fresh, std::string_view argument);
    /// Looks up a query outside int32. Its sum with an offset may fit int32.
    void find_outside(CoordRows const& queries, std::size_t row, CoordRows const& offsets,
                      std::int32_t* out) const;

    backend::CoordStoreRules rules_;
    std::uint32_t columns_ = 0;
    RowBuffer buffer_;
    std::optional<CoordIndex> index_;
};

}  // namespace tensorhash::coords
