// The values of found keys, with defaults for the others: memory first, so that nothing fails under the lock.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {

/// What the values of keys that are not there read as.
class Defaults {
public:
    /// `given` as HashMap::get takes them: none for zeros, or one for each column.
    Defaults(std::vector<Element> const& elements, std::vector<Tensor> const& given,
             std::size_t rows)
        : rows_(rows) {
        if (!given.empty() && given.size() != elements.size()) {
            throw ValueError("default: expected one for each of " +
                             std::to_string(elements.size()) + " columns, got " +
                             std::to_string(given.size()));
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            fills_.push_back(check_fill(given[i], elements[i], rows, "default"));
        }
    }

    /// Column `i` of the table at `numbers`, to `out`.
    void gather(Table const& table, std::size_t i, std::uint32_t const* numbers, void* out) const {
        Column const& column = table.values()[i];
        gather_rows(static_cast<unsigned char*>(out), column.block->data(), column.row_bytes,
                    numbers, rows_, fill(i), step(i));
    }

    /// Some rows from one table of several: number k is that of row places[k].
    void gather_part(Table const& table, std::size_t i, std::uint32_t const* numbers,
                     std::uint32_t const* places, std::size_t rows, void* out) const {
        Column const& column = table.values()[i];
        gather_to(static_cast<unsigned char*>(out), places, column.block->data(), column.row_bytes,
                  numbers, rows, fill(i), step(i));
    }

private:
    /// The rows themselves: null for zeros, and `step` bytes from one key's to the next.
    Bytes fill(std::size_t i) const noexcept {
        return fills_.empty() ? nullptr : fills_[i].batch.data();
    }
    std::size_t step(std::size_t i) const noexcept { return fills_.empty() ? 0 : fills_[i].step; }

    std::size_t rows_;
    std::vector<Fill> fills_;
};

/// The same into tensors of its own.
class Values {
public:
    Values(std::vector<Element> const& elements, std::vector<Tensor> const& defaults,
           std::size_t rows)
        : defaults_(elements, defaults, rows) {
        for (Element const& element : elements) {
            out_.push_back(Tensor::empty(with_rows(rows, element.shape), element.dtype));
        }
    }

    std::vector<Tensor> gather(Table const& table, std::uint32_t const* numbers) {
        for (std::size_t i = 0; i < out_.size(); ++i) {
            defaults_.gather(table, i, numbers, out_[i].data());
        }
        return std::move(out_);
    }

    /// Defaults::gather_part of every column.
    void gather_part(Table const& table, std::uint32_t const* numbers, std::uint32_t const* places,
                     std::size_t rows) {
        for (std::size_t i = 0; i < out_.size(); ++i) {
            defaults_.gather_part(table, i, numbers, places, rows, out_[i].data());
        }
    }
    /// After the parts of all tables.
    std::vector<Tensor> take() { return std::move(out_); }

private:
    Defaults defaults_;
    std::vector<Tensor> out_;
};

}  // namespace tensorhash::table
