// group_by(): checks arguments, picks a way to group, and assembles the result.
#include "tensorhash/data/group_by.hpp"

#include <optional>
#include <string>

#include "data/few_groups.hpp"
#include "data/nunique.hpp"
#include "data/reduce.hpp"
#include "data/values.hpp"
#include "runtime/seed.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::data {
namespace {

/// Up to this many columns, carrying them through the partition beats numbering the rows first.
constexpr std::size_t kMostCarried = 4;

bool is_same_array(Tensor const& a, Tensor const& b) {
    return a.data() == b.data() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
           a.byte_strides() == b.byte_strides();
}

/// The distinct arrays of the aggregations, checked, and the plan over them.
struct Request {
    std::vector<Tensor> arrays;
    Plan plan;
};

Request make_request(std::vector<Aggregation> const& aggregations, std::size_t rows) {
    std::vector<Tensor> given;
    std::vector<Tensor> arrays;
    std::vector<Element> elements;
    std::vector<Plan::Wanted> wanted;
    for (auto const& [what, values, argument] : aggregations) {
        if (what == Aggregate::Count) {
            wanted.push_back({what, kNoColumn});
            continue;
        }
        std::size_t at = 0;
        while (at < given.size() && !is_same_array(given[at], values)) ++at;
        if (at == given.size()) {
            arrays.push_back(check_values(values, rows, argument));
            given.push_back(values);
            elements.push_back(element_of_values(values, argument));
        }
        check_values_element(elements[at], what, argument);
        wanted.push_back({what, at});
    }
    return {std::move(arrays), Plan(elements, wanted)};
}

/// Reduces narrow keys together with their values, which needs no number per row. None if that does
/// not suit the batch.
std::optional<Reduced> reduce_at_once(Plan const& plan, std::vector<Column> const& columns,
                                      KeyRows const& keys, step::HashSecret const& secret) {
    if (!keys.is_narrow() || keys.rows < 2 * kSmallBatch || plan.has_nunique()) return {};
    double groups = estimate_groups(keys, secret);
    if (groups <= static_cast<double>(kFewGroups)) {
        auto few = reduce_few(plan, columns, keys, secret, groups, kMostFewGroups);
        if (few) return few;
        groups = static_cast<double>(2 * kMostFewGroups);  // the estimate was too low
    }
    if (plan.columns() > kMostCarried) return {};
    return reduce_by_parts(plan, columns, keys, secret, groups);
}

}  // namespace

Groups group_by(Tensor const& keys, std::vector<Aggregation> const& aggregations) {
    KeyRows const rows = check_keys(keys, "keys");
    Request const request = make_request(aggregations, rows.rows);
    Plan const& plan = request.plan;
    std::vector<Column> const columns = columns_of_all(request.arrays);
    step::HashSecret const secret = step::secret_of(runtime::new_seed());

    std::optional<Numbering> numbering;
    std::optional<Reduced> at_once = reduce_at_once(plan, columns, rows, secret);
    if (!at_once) {
        numbering = number_rows(rows, secret);
        at_once = {numbering->first_rows, new_states(plan, numbering->groups())};
        add_numbered(plan, columns, numbering->of_rows(), rows.rows, 0, at_once->states);
    }
    Reduced const& reduced = *at_once;

    Groups out{gather_rows(rows, reduced.first_rows), reduced.first_rows, {}};
    for (Output const& output : plan.outputs()) {
        if (output.what != Aggregate::NUnique) {
            out.columns.push_back(plan.finish(output, reduced.states, reduced.groups()));
            continue;
        }
        std::vector<DistinctValues> distinct(output.width());
        for (std::size_t i = 0; i < distinct.size(); ++i) {
            distinct[i]
                .prepare(columns[output.first_column + i], numbering->of_rows(), rows.rows)
                .commit();
        }
        out.columns.push_back(count_distinct(distinct, output, reduced.groups()));
    }
    return out;
}

}  // namespace tensorhash::data
