// The values of found keys, with defaults for the others: memory first, so that nothing fails under the lock.
#pragma once

#include <string>
#include <vector>

#include "table/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {

class Values {
public:
    /// Room for `rows` rows of each column; `defaults` as HashMap::get takes them.
    Values(std::vector<Element> const& elements, std::vector<Tensor> const& defaults,
           std::size_t rows)
        : rows_(rows) {
        if (!defaults.empty() && defaults.size() != elements.size()) {
            throw ValueError("default: expected one for each of " +
                             std::to_string(elements.size()) + " columns, got " +
                             std::to_string(defaults.size()));
        }
        for (std::size_t i = 0; i < elements.size(); ++i) {
            if (!defaults.empty()) {
                missing_.push_back(check_fill(defaults[i], elements[i], rows, "default"));
            }
            out_.push_back(Tensor::empty(with_rows(rows, elements[i].shape), elements[i].dtype));
        }
    }

    std::vector<Tensor> gather(Table const& table, std::uint32_t const* numbers) {
        for (std::size_t i = 0; i < out_.size(); ++i) {
            Column const& column = table.values()[i];
            gather_rows(static_cast<unsigned char*>(out_[i].data()), column.block->data(),
                        column.row_bytes, numbers, rows_,
                        missing_.empty() ? nullptr : missing_[i].batch.data(),
                        missing_.empty() ? 0 : missing_[i].step);
        }
        return std::move(out_);
    }

    /// Some rows from one table of several: number i is that of row places[i].
    void gather_part(Table const& table, std::uint32_t const* numbers, std::uint32_t const* places,
                     std::size_t rows) {
        for (std::size_t i = 0; i < out_.size(); ++i) {
            Column const& column = table.values()[i];
            gather_to(static_cast<unsigned char*>(out_[i].data()), places, column.block->data(),
                      column.row_bytes, numbers, rows,
                      missing_.empty() ? nullptr : missing_[i].batch.data(),
                      missing_.empty() ? 0 : missing_[i].step);
        }
    }
    /// After the parts of all tables.
    std::vector<Tensor> take() { return std::move(out_); }

private:
    std::size_t rows_;
    std::vector<Fill> missing_;
    std::vector<Tensor> out_;
};

}  // namespace tensorhash::table
