// The plan of a group-by: which folds run over which columns, and how results are read from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/folds.hpp"
#include "tensorhash/data/group_by.hpp"

namespace tensorhash::data {

inline constexpr std::size_t kNoColumn = SIZE_MAX;

/// One fold over one column; Count has no column.
struct Fold {
    FoldKind kind;
    Domain domain;
    std::size_t column;

    FoldOps const& ops() const { return fold_ops(kind, domain); }
    friend bool operator==(Fold const&, Fold const&) = default;
};

/// One result column.
struct Output {
    Aggregate what;
    Element values;
    std::size_t first_column = 0;         // of its components
    std::vector<std::size_t> folds = {};  // one per component; empty for NUnique

    std::size_t width() const { return static_cast<std::size_t>(num_elements(values.shape)); }
};

/// States of all groups for every fold: uint64 [groups * words].
using States = std::vector<Tensor>;

class Plan {
public:
    /// Output i is an aggregate of array `array`, or of none.
    struct Wanted {
        Aggregate what;
        std::size_t array;
    };
    Plan(std::vector<Element> const& arrays, std::vector<Wanted> const& wanted);

    std::size_t columns() const noexcept { return columns_; }
    std::vector<Fold> const& folds() const noexcept { return folds_; }
    std::vector<Output> const& outputs() const noexcept { return outputs_; }
    bool has_nunique() const noexcept;

    /// The result column `output` of all groups. Not for NUnique.
    Tensor finish(Output const& output, States const& states, std::size_t groups) const;

private:
    std::size_t fold(FoldKind kind, Domain domain, std::size_t column);

    std::size_t columns_ = 0;
    std::size_t count_ = kNoColumn;  // the Count fold
    std::vector<Fold> folds_;
    std::vector<Output> outputs_;
};

/// Throws TypeError or ValueError that names `argument` unless `values` can be aggregated.
void check_values_element(Element const& values, Aggregate what, std::string const& argument);

}  // namespace tensorhash::data
