// generate_kernel_map: the choice of a path, and what is known of the result besides its pairs.
#include "tensorhash/coords/kernel_map.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coords/kernel_map/question.hpp"
#include "coords/tables/coord_store.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kSeedThreshold = 125;  // offsets from which the seed's rule goes hierarchical
constexpr std::int64_t kCoarseStride = 4;
constexpr std::uint32_t kTableColumns = 4;  // batch, x, y, z

/// The group whose offset is zero, if it joins every row with itself.
std::optional<std::int64_t> identity_of(Question const& question, bool repeated) {
    if (!question.equal || !question.unstrided || !question.odd || repeated) {
        return {};
    }
    for (std::size_t k = 0; k < question.all; ++k) {
        std::int32_t const* const offset = question.offset(k);
        bool zero = true;
        for (std::size_t axis = 0; axis < question.axes; ++axis) {
            zero = zero && offset[axis] == 0;
        }
        if (zero) {
            return static_cast<std::int64_t>(k);
        }
    }
    return {};
}

/// The smallest row that repeats another, as every path reports it.
[[noreturn]] void report_repeated(CoordIndex const& index) {
    std::vector<std::int32_t> first(index.rows().rows);
    index.find(index.rows(), first.data());
    std::size_t row = 0;
    while (first[row] == static_cast<std::int32_t>(row)) {
        ++row;
    }
    fail_repeated(row, static_cast<std::size_t>(first[row]));
}

Answer probe(Question const& question, Strategy strategy) {
    CoordIndex const index(question.in);
    bool const repeated = index.distinct() < question.in.rows;
    if (repeated && question.duplicates == Duplicates::Refuse) {
        report_repeated(index);
    }
    Answer answer = strategy == Strategy::Flat
                        ? flat_kernel_map(question, index)
                        : hierarchical_kernel_map(question, index, kCoarseStride);
    answer.repeated = repeated;
    return answer;
}

struct PathAnswer {
    Answer answer;
    Strategy strategy;
};

/// Blocks have been the fastest wherever they apply, merging everywhere else (docs/decisions/0008).
PathAnswer fastest(Question const& question) {
    if (blocks_take(question)) {
        if (auto answer = blocks_kernel_map(question)) {
            return {std::move(*answer), Strategy::Blocks};
        }
    }
    return {merge_kernel_map(question), Strategy::Merge};
}

Answer by_blocks(Question const& question) {
    check_blocks_take(question);
    if (question.in.rows == 0) return merge_kernel_map(question);  // nothing to lay out
    if (auto answer = blocks_kernel_map(question)) return std::move(*answer);
    throw ValueError(
        "in_coords: the blocks path takes coordinates that fill more of their bounding box; use "
        "the strategy merge or the fastest");
}

PathAnswer answer_by(Question const& question, Strategy wish) {
    if (wish == Strategy::Seed) {
        bool const large = question.all >= kSeedThreshold && question.groups == question.all;
        wish = large && hierarchical_takes(question) ? Strategy::Hierarchical : Strategy::Flat;
    }
    switch (wish) {
        case Strategy::Blocks:
            return {by_blocks(question), wish};
        case Strategy::Merge:
            return {merge_kernel_map(question), wish};
        case Strategy::Flat:
        case Strategy::Hierarchical:
            return {probe(question, wish), wish};
        case Strategy::Seed:
        case Strategy::Fastest:
            break;
    }
    return fastest(question);
}

/// The rows of queries that lie within int32, and which they are; the others have no pairs.
struct Inside {
    CoordRows rows{};
    std::vector<std::int32_t> numbers{};  // empty if all do

    explicit Inside(CoordRows const& queries) {
        NarrowQueries narrow = narrow_queries(queries);
        rows = narrow.rows;
        if (narrow.outside.empty()) return;
        std::size_t const count = rows.rows - narrow.outside.size();
        Tensor kept = Tensor::empty({static_cast<std::int64_t>(count), rows.columns}, Dtype::Int32);
        auto* to = static_cast<std::int32_t*>(kept.data());
        auto skip = narrow.outside.begin();
        for (std::size_t row = 0; row < rows.rows; ++row) {
            if (skip != narrow.outside.end() && *skip == row) {
                ++skip;
                continue;
            }
            to = std::copy_n(row_of(rows, row), rows.columns, to);
            numbers.push_back(static_cast<std::int32_t>(row));
        }
        rows = {std::move(kept), count, rows.columns};
    }
};

KernelMap finish(Question const& question, Answer&& answer, Strategy strategy) {
    if (question.groups < question.all && answer.repeated) {
        throw ValueError(
            "skip_symmetric_kernel_map: expected distinct coordinates; a map with repeated rows is "
            "not symmetric");
    }
    KernelMap map;
    map.identity_map_index = identity_of(question, answer.repeated);
    map.in_maps = std::move(answer.in_maps);
    map.out_maps = std::move(answer.out_maps);
    map.offsets = std::move(answer.offsets);
    map.num_in = static_cast<std::int64_t>(question.in.rows);
    map.num_out = static_cast<std::int64_t>(question.out.rows);
    map.strategy = strategy;
    map.coarse_probes = answer.coarse_probes;
    map.fine_probes = answer.fine_probes;
    return map;
}

}  // namespace

Strategy strategy_from_name(std::string_view name) {
    for (Strategy const strategy : {Strategy::Blocks, Strategy::Flat, Strategy::Hierarchical,
                                    Strategy::Merge, Strategy::Seed}) {
        if (coords::name(strategy) == name) {
            return strategy;
        }
    }
    throw ValueError(
        "strategy: expected \"blocks\", \"flat\", \"hierarchical\", \"merge\" or \"seed\", got \"" +
        std::string(name) + "\"");
}

std::string_view name(Strategy strategy) noexcept {
    switch (strategy) {
        case Strategy::Blocks:
            return "blocks";
        case Strategy::Flat:
            return "flat";
        case Strategy::Hierarchical:
            return "hierarchical";
        case Strategy::Merge:
            return "merge";
        case Strategy::Seed:
            return "seed";
        case Strategy::Fastest:
            break;
    }
    return "fastest";
}

KernelMap generate_kernel_map(Tensor const& in_coords, Tensor const& out_coords,
                              Shape const& stride, Kernel const& kernel,
                              KernelMapOptions const& options) {
    Question const question = check_question(in_coords, out_coords, stride, kernel, options);
    auto [answer, strategy] = answer_by(question, options.strategy);
    return finish(question, std::move(answer), strategy);
}

KernelMap kernel_map_from_offsets(Tensor const& in_coords, Tensor const& out_coords,
                                  Shape const& stride, Tensor const& kernel_offsets,
                                  Duplicates duplicates) {
    Question const question =
        check_offsets_question(in_coords, out_coords, stride, kernel_offsets, duplicates);
    return finish(question, probe(question, Strategy::Flat), Strategy::Flat);
}

KernelMap kernel_map_from_size_hierarchical(CoordTableBase const& fine_ht,
                                            Tensor const& query_coords, Shape const& kernel_size,
                                            std::int64_t stride) {
    return fine_ht.store().read([&](CoordIndex const* index) {
        CoordIndex const nothing(
            {Tensor::empty({0, kTableColumns}, Dtype::Int32), 0, kTableColumns});
        CoordIndex const& fine = index != nullptr ? *index : nothing;
        if (fine.columns() != kTableColumns) {
            throw ValueError("fine_ht: expected a table of 4 columns (batch, x, y, z), got " +
                             std::to_string(fine.columns()));
        }
        CoordRows const queries = check_rows(query_coords, "query_coords", kTableColumns);
        Inside const inside(queries);
        Question question =
            check_question(fine.rows().tensor, inside.rows.tensor, Shape(kTableColumns - 1, 1),
                           Kernel{kernel_size}, {}, "query_coords");
        bool const all = inside.rows.rows == queries.rows;
        question.equal = question.equal && all;
        Answer answer = hierarchical_kernel_map(question, fine, stride);
        answer.repeated = fine.distinct() < fine.rows().rows;
        KernelMap map = finish(question, std::move(answer), Strategy::Hierarchical);
        if (!all) {
            for (std::int32_t& row : map.out_maps.as_mutable<std::int32_t>()) {
                row = inside.numbers[static_cast<std::size_t>(row)];
            }
            map.num_out = static_cast<std::int64_t>(queries.rows);
        }
        return map;
    });
}

}  // namespace tensorhash::coords
