// What an owner does with the rows that arrived, and the copies between messages and batches.
#include <algorithm>
#include <string>

#include "map/arguments.hpp"
#include "map/results.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "table/rows.hpp"
#include "tensor/allocators.hpp"
#include "tensor/row_numbers.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/ranks.hpp"

namespace tensorhash {

Tensor marked_indices(Tensor const& indices, Tensor const& mask) {
    auto const index = indices.as<std::int32_t>();
    auto const is_set = mask.as<bool>();
    if (index.size() != is_set.size()) {
        throw ValueError("mask: expected " + std::to_string(index.size()) +
                         " rows, as many as indices, got " + std::to_string(is_set.size()));
    }
    Tensor out = Tensor::empty(indices.shape(), Dtype::Int32);
    auto const marked = out.as_mutable<std::int32_t>();
    runtime::for_ranges(index.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            marked[row] = is_set[row] ? index[row] : ~index[row];
        }
    });
    return out;
}

Tensor rows_where(Tensor const& indices, bool found) {
    auto const index = indices.as<std::int32_t>();
    return numbers_where<std::int32_t>(index.size(),
                                       [&](std::size_t row) { return (index[row] >= 0) == found; });
}

std::vector<std::int64_t> count_true(Tensor const& mask, std::vector<std::int64_t> const& counts) {
    auto const is_set = mask.as<bool>();
    std::vector<std::int64_t> totals;
    auto at = is_set.begin();
    for (std::int64_t const rows : counts) {
        if (rows < 0 || rows > is_set.end() - at) {
            throw ValueError("counts: expected the rows of mask, " + std::to_string(is_set.size()) +
                             " in all, got more");
        }
        totals.push_back(std::count(at, at + rows, true));
        at += rows;
    }
    return totals;
}

namespace {

/// The width of the rows. Throws unless they lie one after the other on the CPU.
std::size_t row_bytes(Tensor const& tensor, char const* argument) {
    std::size_t const bytes = map::element_of(tensor, argument).bytes();
    require_host(tensor.device(), argument);
    if (!tensor.is_contiguous()) {
        throw ValueError(std::string(argument) + ": not contiguous; call contiguous() first");
    }
    return bytes;
}

[[noreturn]] void refuse_rows(std::size_t bytes, std::int64_t begin, std::int64_t end,
                              Tensor const& to, std::int64_t at) {
    throw ValueError("rows: expected rows of " + std::to_string(bytes) +
                     " bytes that fit into `to`, got rows " + std::to_string(begin) + " to " +
                     std::to_string(end) + " for row " + std::to_string(at) + " of " +
                     to_string(to.shape()));
}

}  // namespace

void pack_rows(Tensor const& from, Tensor const& rows, std::int64_t begin, std::int64_t end,
               Tensor& to, std::int64_t at) {
    std::size_t const bytes = row_bytes(from, "from");
    auto const row = rows.as<std::int32_t>();
    if (row_bytes(to, "to") != bytes || at < 0 || begin < 0 || end < begin || end > rows.size() ||
        end - begin > to.shape()[0] - at) {
        refuse_rows(bytes, begin, end, to, at);
    }
    table::gather_rows(
        static_cast<unsigned char*>(to.data()) + static_cast<std::size_t>(at) * bytes,
        static_cast<unsigned char const*>(from.data()), bytes,
        reinterpret_cast<std::uint32_t const*>(row.data()) + begin,
        static_cast<std::size_t>(end - begin));
}

void copy_rows(Tensor const& from, std::int64_t begin, std::int64_t end, Tensor& to,
               std::int64_t at) {
    std::size_t const bytes = row_bytes(from, "from");
    if (row_bytes(to, "to") != bytes || at < 0 || begin < 0 || end < begin ||
        end > from.shape()[0] || end - begin > to.shape()[0] - at) {
        refuse_rows(bytes, begin, end, to, at);
    }
    auto const place = [bytes](std::int64_t row) { return static_cast<std::size_t>(row) * bytes; };
    runtime::copy_bytes(static_cast<unsigned char*>(to.data()) + place(at),
                        static_cast<unsigned char const*>(from.data()) + place(begin),
                        place(end - begin));
}

}  // namespace tensorhash
