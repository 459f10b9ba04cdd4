// Joins a row with the stored one, for every dtype.
#pragma once

#include <cstddef>

#include "tensorhash/dtype.hpp"
#include "tensorhash/reduce.hpp"

namespace tensorhash::table {

/// A function chosen once per column, called once per row.
class Join {
public:
    Join(Element const& element, Reduce reduce);
    void operator()(unsigned char* stored, unsigned char const* row) const {
        function_(stored, row, elements_);
    }

private:
    using Function = void (*)(unsigned char* stored, unsigned char const* row,
                              std::size_t elements);
    Function function_;
    std::size_t elements_;  // for Last, which only copies: bytes
};

}  // namespace tensorhash::table
