// Group-by with many groups. A stable partition by hash brings the rows of a key into one part,
// with their values and in row order. A part's groups fit in cache, and one thread folds them. The
// first rows of the groups then give the order of the result.
#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <utility>

#include "cpu/part_order.hpp"
#include "cpu/partition.hpp"
#include "cpu/word_numbers.hpp"
#include "data/reduce.hpp"
#include "runtime/arena.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::data {
namespace {

using cpu::kParts;

/// Columns per partition: more would need larger records in cache.
constexpr std::size_t kRoundColumns = 2;
static_assert(kRoundColumns <= cpu::kMaxCarried);

/// Some columns of a plan that are carried through one partition, and the folds over them.
struct Round {
    std::vector<std::size_t> columns;
    std::vector<std::size_t> folds;
    std::vector<std::size_t> carried;  // for each fold: the position of its column in `columns`
};

/// Cuts the plan into rounds. Count needs no column and is in the first one.
std::vector<Round> rounds_of(Plan const& plan) {
    std::vector<Round> rounds(1);
    for (std::size_t column = 0; column < plan.columns(); ++column) {
        std::vector<Fold> const& folds = plan.folds();
        bool const is_used = std::any_of(folds.begin(), folds.end(),
                                         [&](Fold const& fold) { return fold.column == column; });
        if (!is_used) continue;
        if (rounds.back().columns.size() == kRoundColumns) rounds.emplace_back();
        rounds.back().columns.push_back(column);
    }
    for (std::size_t which = 0; which < plan.folds().size(); ++which) {
        std::size_t const column = plan.folds()[which].column;
        for (Round& round : rounds) {
            auto const at = std::find(round.columns.begin(), round.columns.end(), column);
            if (at == round.columns.end() && column != kNoColumn) continue;
            round.folds.push_back(which);
            round.carried.push_back(static_cast<std::size_t>(at - round.columns.begin()));
            break;
        }
    }
    return rounds;
}

/// Mixed keys and widened values, for the partition.
class Source final : public cpu::PartitionSource {
public:
    Source(KeyRows const& keys, step::HashSecret const& secret, std::vector<Column> columns)
        : keys_(keys.narrow()), secret_(secret), columns_(std::move(columns)) {}

    void read(std::size_t begin, std::size_t count, std::uint64_t* words,
              std::uint64_t* const* room, std::uint64_t const** values) const override {
        loops_->mix(keys_, secret_, begin, count, words);
        for (std::size_t k = 0; k < columns_.size(); ++k) {
            values[k] = widen(columns_[k], begin, count, room[k]);
        }
    }

private:
    cpu::NarrowKeys keys_;
    step::HashSecret secret_;
    std::vector<Column> columns_;
    cpu::GroupLoops const* loops_ = &cpu::group_loops();
};

/// The groups of one part: first rows ascend. The memory is that of an arena.
struct PartGroups {
    std::span<std::uint32_t const> first_rows;
    std::vector<std::uint64_t const*> states;  // one per fold of the round
};

template <class T>
T const* copy_to(runtime::Arena& arena, T const* from, std::size_t count) {
    T* const to = arena.take<T>(count);
    std::copy_n(from, count, to);
    return to;
}

/// Folds the rows of parts. One per thread: its tables are reused from part to part.
class PartReducer {
public:
    PartReducer(Plan const& plan, Round const& round, cpu::Partition const& partition,
                double groups, runtime::Arena& arena)
        : round_(round), partition_(partition), groups_per_part_(groups / kParts), arena_(&arena) {
        for (std::size_t const which : round.folds) ops_.push_back(&plan.folds()[which].ops());
        states_.resize(ops_.size());
    }

    PartGroups reduce(std::size_t part) {
        auto const rows = static_cast<double>(partition_.rows(part));
        table_.reset(static_cast<std::size_t>(std::min(rows, groups_per_part_ * 1.15 + 64)));
        for (std::vector<std::uint64_t>& states : states_) states.clear();
        partition_.for_blocks(part, [&](cpu::PartBlock const& block) { add(block); });
        PartGroups out{{copy_to(*arena_, table_.rows().data(), table_.count()), table_.count()},
                       {}};
        for (std::vector<std::uint64_t> const& states : states_) {
            out.states.push_back(copy_to(*arena_, states.data(), states.size()));
        }
        return out;
    }

private:
    void add(cpu::PartBlock const& block) {
        std::array<std::uint32_t, cpu::kBlockRows> numbers;
        std::size_t const before = table_.count();
        table_.number(block.words, block.rows, 0, block.count, numbers.data());
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            FoldOps const& ops = *ops_[i];
            states_[i].resize(table_.count() * ops.words);
            ops.start(states_[i].data(), before, table_.count());
            std::uint64_t const* const values = round_.carried[i] < round_.columns.size()
                                                    ? block.values[round_.carried[i]]
                                                    : nullptr;
            ops.add(states_[i].data(), {numbers.data(), values, block.rows, 0, block.count});
        }
    }

    Round const& round_;
    cpu::Partition const& partition_;
    double groups_per_part_;
    std::vector<FoldOps const*> ops_;
    std::vector<std::vector<std::uint64_t>> states_;
    cpu::WordNumbers table_;
    runtime::Arena* arena_;
};

/// All parts, and the memory of each thread's.
struct AllParts {
    std::array<PartGroups, kParts> parts;
    std::vector<runtime::Arena> arenas;
};

cpu::FirstRows first_rows_of(AllParts const& parts) {
    cpu::FirstRows out;
    std::transform(parts.parts.begin(), parts.parts.end(), out.begin(),
                   [](PartGroups const& part) { return part.first_rows; });
    return out;
}

AllParts reduce_all(Plan const& plan, Round const& round, cpu::Partition const& partition,
                    double groups) {
    AllParts all{{}, std::vector<runtime::Arena>(static_cast<std::size_t>(num_threads()))};
    std::atomic<std::size_t> threads{0};
    partition.for_parts([&] {
        // Relaxed: the number only picks an arena.
        runtime::Arena& arena = all.arenas[threads.fetch_add(1, std::memory_order_relaxed)];
        return [&, reducer = PartReducer(plan, round, partition, groups, arena)](
                   std::size_t part) mutable { all.parts[part] = reducer.reduce(part); };
    });
    return all;
}

void write_round(Round const& round, Plan const& plan, AllParts const& all,
                 cpu::PartOrder const& order, Reduced& out) {
    auto* const first_rows = static_cast<std::int64_t*>(out.first_rows.data());
    struct Target {
        std::size_t words;
        std::uint64_t* states;
    };
    std::vector<Target> targets;
    for (std::size_t const which : round.folds) {
        std::size_t const words = plan.folds()[which].ops().words;
        out.states[which] = Tensor::empty(with_rows(order.groups() * words, {}), Dtype::UInt64);
        targets.push_back({words, static_cast<std::uint64_t*>(out.states[which].data())});
    }
    order.for_groups([&](std::size_t part, std::size_t group, std::size_t rank) {
        PartGroups const& from = all.parts[part];
        first_rows[rank] = from.first_rows[group];
        for (std::size_t i = 0; i < targets.size(); ++i) {
            auto const [words, states] = targets[i];
            for (std::size_t word = 0; word < words; ++word) {
                states[rank * words + word] = from.states[i][group * words + word];
            }
        }
    });
}

}  // namespace

Reduced reduce_by_parts(Plan const& plan, std::vector<Column> const& columns, KeyRows const& keys,
                        step::HashSecret const& secret, double groups) {
    Reduced out;
    out.states.resize(plan.folds().size());
    for (Round const& round : rounds_of(plan)) {
        std::vector<Column> carried;
        for (std::size_t const column : round.columns) carried.push_back(columns[column]);
        Source const source(keys, secret, std::move(carried));
        cpu::Partition const partition(source, keys.rows, round.columns.size());
        AllParts const parts = reduce_all(plan, round, partition, groups);
        cpu::PartOrder const order(first_rows_of(parts), keys.rows);
        if (out.first_rows.dtype() == Dtype::Undefined) {
            out.first_rows = Tensor::empty(with_rows(order.groups(), {}), Dtype::Int64);
        }
        write_round(round, plan, parts, order, out);
    }
    return out;
}

}  // namespace tensorhash::data
