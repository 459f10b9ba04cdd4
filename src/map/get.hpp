// Values of the found keys, defaults for the others. Memory is allocated first, so that nothing
// fails under the lock.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::map {

/// The values that absent keys read as.
class Defaults {
public:
    /// `given` is what HashMap::get takes: empty for zeros, or one default per column.
    Defaults(std::vector<Element> const& elements, std::vector<Tensor> const& given,
             std::size_t rows, Device device = {}) {
        if (!given.empty() && given.size() != elements.size()) {
            throw ValueError("default: expected one for each of " +
                             std::to_string(elements.size()) + " columns, got " +
                             std::to_string(given.size()));
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            fills_.push_back(check_fill(given[i], elements[i], rows, "default", device));
        }
    }

    /// Gathers column `i` of the table to `out`, with the defaults as `rows.missing`.
    template <class AnyTable>
    void gather(AnyTable const& table, std::size_t i, backend::Gather rows, void* out) const {
        if (FillRows const* const fill = of(i); fill != nullptr) {
            rows.missing = fill->rows();
        }
        table.gather(i, rows, out);
    }

    /// Null if absent keys read as zeros.
    FillRows const* of(std::size_t i) const noexcept {
        return fills_.empty() ? nullptr : &fills_[i];
    }

private:
    std::vector<FillRows> fills_;
};

/// The same for all columns, into new tensors.
class Values {
public:
    Values(std::vector<Element> const& elements, std::vector<Tensor> const& defaults,
           std::size_t rows, Device device = {})
        : defaults_(elements, defaults, rows, device), out_(empty_rows(elements, rows, device)) {}

    /// Gathers every column. With several tables, call it once per table; `rows.places` says where
    /// the table's rows go in the result.
    template <class AnyTable>
    void gather(AnyTable const& table, backend::Gather const& rows) {
        for (std::size_t i = 0; i < out_.size(); ++i) {
            defaults_.gather(table, i, rows, out_[i].data());
        }
    }
    /// The result, on the device of the caller's keys. Call it after the last gather().
    std::vector<Tensor> take(Device home = {}) {
        for (Tensor& column : out_) {
            column = deliver(std::move(column), home);
        }
        return std::move(out_);
    }

private:
    Defaults defaults_;
    std::vector<Tensor> out_;
};

}  // namespace tensorhash::map
