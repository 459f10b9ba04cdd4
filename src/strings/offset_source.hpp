// Strings in Arrow's layout as a source.
#pragma once

#include "tensorhash/strings.hpp"

namespace tensorhash::strings {

class OffsetSource final : public StringSource {
public:
    /// Throws TypeError or ValueError unless the offsets ascend and stay within the bytes.
    explicit OffsetSource(StringRows const& rows);

    std::size_t rows() const noexcept override { return rows_; }
    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string& room) const override;
    bool is_preceded() const noexcept override { return true; }

private:
    Tensor offsets_;
    Tensor bytes_;
    std::size_t rows_;
};

}  // namespace tensorhash::strings
