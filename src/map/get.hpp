// The values of found keys, with defaults for the others: memory first, so that nothing fails under the lock.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::map {

/// What the values of keys that are not there read as.
class Defaults {
public:
    /// `given` as HashMap::get takes them: none for zeros, or one for each column.
    Defaults(std::vector<Element> const& elements, std::vector<Tensor> const& given,
             std::size_t rows) {
        if (!given.empty() && given.size() != elements.size()) {
            throw ValueError("default: expected one for each of " +
                             std::to_string(elements.size()) + " columns, got " +
                             std::to_string(given.size()));
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            fills_.push_back(check_fill(given[i], elements[i], rows, "default"));
        }
    }

    /// Column `i` of the table, to `out`; `rows.missing` is filled in.
    template <class AnyTable>
    void gather(AnyTable const& table, std::size_t i, backend::Gather rows, void* out) const {
        if (!fills_.empty()) {
            rows.missing = fills_[i].rows();
        }
        table.gather(i, rows, out);
    }

private:
    std::vector<Fill> fills_;
};

/// The same into tensors of its own.
class Values {
public:
    Values(std::vector<Element> const& elements, std::vector<Tensor> const& defaults,
           std::size_t rows)
        : defaults_(elements, defaults, rows), out_(empty_rows(elements, rows)) {}

    /// Rows of every column; one of several tables names the places that are its own.
    template <class AnyTable>
    void gather(AnyTable const& table, backend::Gather const& rows) {
        for (std::size_t i = 0; i < out_.size(); ++i) {
            defaults_.gather(table, i, rows, out_[i].data());
        }
    }
    /// After the rows of all tables.
    std::vector<Tensor> take() { return std::move(out_); }

private:
    Defaults defaults_;
    std::vector<Tensor> out_;
};

}  // namespace tensorhash::map
