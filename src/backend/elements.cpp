// The error of a row number that does not exist.
#include "backend/elements.hpp"

#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::backend {

void fail_row_number(std::uint64_t at, std::int64_t number, std::uint64_t rows) {
    std::string const limits = rows == 0
                                   ? "none, because there are no rows"
                                   : "-" + std::to_string(rows) + " to " + std::to_string(rows - 1);
    throw IndexError("indices: row " + std::to_string(at) + ": expected " + limits + ", got " +
                     std::to_string(number));
}

}  // namespace tensorhash::backend
