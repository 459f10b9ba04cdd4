// The eviction rules of a bounded table, row by row. Works on buffer indices alone: no hashing, no
// values.
#include "table/evict.hpp"

#include <utility>

namespace tensorhash::table {
namespace {

class Planner {
public:
    Planner(RankedRows const& batch, RankedTable const& table, std::vector<std::uint32_t>& where)
        : batch_(batch), table_(table), where_(where), size_(table.table.size()),
          capacity_(table.table.capacity()) {
        plan_.buf_indices.resize(batch.rows);
        plan_.leaves.assign(batch.rows, kNoEviction);
        plan_.added.assign(batch.rows, 0);
        visited_.reserve(where.size() + batch.rows);  // no failure once `visits` is in use
        for (std::uint32_t i = 0; i < where.size(); ++i) {
            if (where[i] != kNotFound) {
                visited_.push_back(where[i]);
                table_.visits[where[i]].distinct = i;
            }
        }
    }
    /// Resets the scratch, also after an exception.
    ~Planner() {
        for (std::uint32_t const buf_index : visited_) {
            table_.visits[buf_index] = {};
        }
    }
    Planner(Planner const&) = delete;
    Planner& operator=(Planner const&) = delete;

    EvictionPlan run() {
        for (std::uint32_t row = 0; row < batch_.rows; ++row) {
            use(row);
        }
        for (std::uint32_t const buf_index : plan_.replaced) {
            plan_.arriving.push_back(table_.visits[buf_index].key_row);
        }
        for (std::uint32_t const buf_index : fresh_) {
            plan_.arriving.push_back(table_.visits[buf_index].key_row);
        }
        return std::move(plan_);
    }

private:
    Rank rank_of_row(std::uint32_t row) const {
        std::size_t const at = batch_.order == nullptr ? row : batch_.order[row];
        return {batch_.scores[at], batch_.first_use + at};
    }
    Rank rank_of(std::uint32_t buf_index) const {
        std::uint32_t const row = table_.visits[buf_index].last_row;
        return row != kNoRow ? rank_of_row(row)
                             : Rank{table_.scores[buf_index], table_.uses[buf_index]};
    }

    void use(std::uint32_t row) {
        std::uint32_t const distinct = batch_.distinct[row];
        if (where_[distinct] == kNotFound) {
            where_[distinct] = size_ < capacity_ ? next_buf_index() : buf_index_of_victim(row);
            if (where_[distinct] != kNotFound) {
                plan_.added[row] = 1;
                table_.visits[where_[distinct]] = {distinct, row, row};
            }
        }
        std::uint32_t const buf_index = where_[distinct];
        plan_.buf_indices[row] = buf_index;
        if (buf_index != kNotFound) {
            table_.visits[buf_index].last_row = row;
            table_.victims.add(rank_of_row(row), buf_index);
        }
    }

    /// The index that the table gives to the next new key: from the free stack, then fresh.
    std::uint32_t next_buf_index() {
        auto const& free = table_.table.free_stack();
        std::size_t const taken = fresh_.size();
        auto const buf_index =
            taken < free.size()
                ? free[free.size() - 1 - taken]
                : table_.table.top() + static_cast<std::uint32_t>(taken - free.size());
        fresh_.push_back(buf_index);
        visited_.push_back(buf_index);
        ++size_;
        return buf_index;
    }

    /// The buffer index of the entry that this row evicts; kNotFound if the row ranks lowest.
    std::uint32_t buf_index_of_victim(std::uint32_t row) {
        auto const lowest =
            table_.victims.lowest(static_cast<std::uint32_t>(capacity_), batch_.rows - row,
                                  [this](std::uint32_t buf_index) { return rank_of(buf_index); });
        plan_.leaves[row] = static_cast<std::uint32_t>(plan_.leaving.size());
        if (rank_of_row(row) < lowest.rank) {
            plan_.leaving.push_back({kNotFound, row});
            return kNotFound;
        }
        table_.victims.take_lowest();
        EntryUse const visit = table_.visits[lowest.buf_index];
        plan_.leaving.push_back({lowest.buf_index, visit.key_row});
        if (visit.key_row == kNoRow) {
            plan_.replaced.push_back(lowest.buf_index);
        }
        if (visit.distinct == kNoKey) {
            visited_.push_back(lowest.buf_index);
        } else {
            where_[visit.distinct] = kNotFound;
        }
        return lowest.buf_index;
    }

    RankedRows const& batch_;
    RankedTable const& table_;
    std::vector<std::uint32_t>& where_;
    std::uint64_t size_;
    std::uint64_t const capacity_;
    std::vector<std::uint32_t> fresh_;    // indices of keys added without eviction, in order
    std::vector<std::uint32_t> visited_;  // indices with scratch in use
    EvictionPlan plan_;
};

}  // namespace

EvictionPlan plan_batch(RankedRows const& batch, RankedTable const& table,
                        std::vector<std::uint32_t>& where) {
    return Planner(batch, table, where).run();
}

}  // namespace tensorhash::table
