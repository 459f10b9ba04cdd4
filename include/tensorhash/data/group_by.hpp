// group_by(): one row per distinct key, with sums, means, extremes and more of the key's rows.
// GroupBy does the same for data that arrives in batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::data {

/// What to compute of the rows of a group. docs/data.md has the rules for NaN, bool and overflow.
enum class Aggregate : std::uint8_t {
    Sum,
    Mean,
    Min,
    Max,
    Count,
    Prod,
    Any,
    All,
    Var,
    Std,
    First,
    Last,
    ArgMin,
    ArgMax,
    NUnique,
};

/// Throws a ValueError that lists the valid names: "sum", "mean", ..., "nunique".
TH_API Aggregate aggregate_from_name(std::string_view name);

/// One result column: an aggregate of `values`, [N, ...]. Count needs no values.
struct Aggregation {
    Aggregate what = Aggregate::Count;
    Tensor values = {};
    std::string name = "values";  ///< of the values, in messages
};

/// One row per group, in order of first occurrence.
struct Groups {
    Tensor keys;                  ///< [G, *key shape]: the first row of each group
    Tensor first_rows;            ///< int64 [G]: its row number
    std::vector<Tensor> columns;  ///< [G, *value shape], one per aggregation
};

/// Groups equal rows of `keys` and aggregates each group's rows in row order: the same bits as a
/// loop over the rows, on any number of threads.
TH_API Groups group_by(Tensor const& keys, std::vector<Aggregation> const& aggregations);

/// The type of one result column of a stream.
struct StreamColumn {
    Aggregate what = Aggregate::Count;
    Element values = {};          ///< of the values; Count needs none
    std::string name = "values";  ///< of the values, in messages
};

/// group_by() over batches: update() with each of them, then result(). The result has the same bits
/// as group_by() of all batches joined. A call that throws changes nothing. One thread at a time.
class TH_API GroupBy {
public:
    GroupBy(Element key, std::vector<StreamColumn> columns);
    GroupBy(GroupBy&&) noexcept;
    GroupBy& operator=(GroupBy&&) noexcept;
    ~GroupBy();

    /// Adds the rows of a batch: one array of values per column, an empty tensor for Count.
    void update(Tensor const& keys, std::vector<Tensor> const& values);
    /// Adds the groups of another stream as if its rows came after all rows of this one. Sums,
    /// products and moments of a group are joined as one number per stream.
    void merge(GroupBy const& other);
    /// The same if keys were encoded: `keys` has a row for each group of `other`, in order.
    void merge(GroupBy const& other, Tensor const& keys);
    Groups result() const;
    /// Rows and groups so far.
    std::int64_t rows() const noexcept;
    std::int64_t groups() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash::data
