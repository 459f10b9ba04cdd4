// The rules of a bounded table, one row after the other. Keys are numbers here: no hashing, no values.
#include "table/evict.hpp"

#include <utility>

namespace tensorhash::table {
namespace {

class Planner {
public:
    Planner(RankedRows const& batch, RankedTable const& table, std::vector<std::uint32_t>& where)
        : batch_(batch), table_(table), where_(where), size_(table.table.size()),
          capacity_(table.table.capacity()) {
        plan_.numbers.resize(batch.rows);
        plan_.leaves.assign(batch.rows, kNone);
        plan_.added.assign(batch.rows, 0);
        visited_.reserve(where.size() + batch.rows);  // from here on nothing fails
        for (std::uint32_t i = 0; i < where.size(); ++i) {
            if (where[i] != kNone) {
                visited_.push_back(where[i]);
                table_.visits[where[i]].distinct = i;
            }
        }
    }
    /// The scratch goes back as it came, whatever happened.
    ~Planner() {
        for (std::uint32_t const number : visited_) {
            table_.visits[number] = {};
        }
    }
    Planner(Planner const&) = delete;
    Planner& operator=(Planner const&) = delete;

    Plan run() {
        for (std::uint32_t row = 0; row < batch_.rows; ++row) {
            use(row);
        }
        for (std::uint32_t const number : plan_.replaced) {
            plan_.arriving.push_back(table_.visits[number].key_row);
        }
        for (std::uint32_t const number : fresh_) {
            plan_.arriving.push_back(table_.visits[number].key_row);
        }
        return std::move(plan_);
    }

private:
    Rank rank_of_row(std::uint32_t row) const {
        std::size_t const at = batch_.order == nullptr ? row : batch_.order[row];
        return {batch_.scores[at], batch_.first_use + at};
    }
    Rank rank_of(std::uint32_t number) const {
        std::uint32_t const row = table_.visits[number].last_row;
        return row != kNone ? rank_of_row(row) : Rank{table_.scores[number], table_.uses[number]};
    }

    void use(std::uint32_t row) {
        std::uint32_t const distinct = batch_.distinct[row];
        if (where_[distinct] == kNone) {
            where_[distinct] = size_ < capacity_ ? next_number() : number_of_victim(row);
            if (where_[distinct] != kNone) {
                plan_.added[row] = 1;
                table_.visits[where_[distinct]] = {distinct, row, row};
            }
        }
        std::uint32_t const number = where_[distinct];
        plan_.numbers[row] = number;
        if (number != kNone) {
            table_.visits[number].last_row = row;
            table_.victims.add(rank_of_row(row), number);
        }
    }

    /// Where the table itself puts the next new key: off the free stack, then fresh.
    std::uint32_t next_number() {
        auto const& free = table_.table.free_stack();
        std::size_t const taken = fresh_.size();
        auto const number =
            taken < free.size()
                ? free[free.size() - 1 - taken]
                : table_.table.top() + static_cast<std::uint32_t>(taken - free.size());
        fresh_.push_back(number);
        visited_.push_back(number);
        ++size_;
        return number;
    }

    /// The number of the entry that leaves for this row; kNone if the row itself ranks lowest.
    std::uint32_t number_of_victim(std::uint32_t row) {
        auto const lowest =
            table_.victims.lowest(static_cast<std::uint32_t>(capacity_), batch_.rows - row,
                                  [this](std::uint32_t number) { return rank_of(number); });
        plan_.leaves[row] = static_cast<std::uint32_t>(plan_.leaving.size());
        if (rank_of_row(row) < lowest.rank) {
            plan_.leaving.push_back({kNone, row});
            return kNone;
        }
        table_.victims.take_lowest();
        Visit const visit = table_.visits[lowest.number];
        plan_.leaving.push_back({lowest.number, visit.key_row});
        if (visit.key_row == kNone) {
            plan_.replaced.push_back(lowest.number);
        }
        if (visit.distinct == kNone) {
            visited_.push_back(lowest.number);
        } else {
            where_[visit.distinct] = kNone;
        }
        return lowest.number;
    }

    RankedRows const& batch_;
    RankedTable const& table_;
    std::vector<std::uint32_t>& where_;
    std::uint64_t size_;
    std::uint64_t const capacity_;
    std::vector<std::uint32_t> fresh_;    // numbers given to new keys without an eviction, in order
    std::vector<std::uint32_t> visited_;  // numbers whose scratch is in use
    Plan plan_;
};

}  // namespace

Plan plan_batch(RankedRows const& batch, RankedTable const& table,
                std::vector<std::uint32_t>& where) {
    return Planner(batch, table, where).run();
}

}  // namespace tensorhash::table
