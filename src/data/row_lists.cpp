// A stable counting sort of rows by number. Each thread has a range of numbers, so that its counts
// stay in its cache, and reads all rows.
#include "data/row_lists.hpp"

#include <algorithm>
#include <span>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::data {
namespace {

/// Below this many rows one thread is enough.
constexpr std::size_t kShared = std::size_t{1} << 16;

}  // namespace

RowLists::RowLists(std::uint32_t const* numbers, std::size_t rows, std::size_t count)
    : is_identity_(rows == count), rows_(rows) {
    if (is_identity_) return;
    offsets_ = runtime::Block((count + 1) * sizeof(std::uint32_t), runtime::Fill::Zero);
    list_ = runtime::Block(rows * sizeof(std::uint32_t));
    auto* const ends = reinterpret_cast<std::uint32_t*>(offsets_.data());
    auto* const list = reinterpret_cast<std::uint32_t*>(list_.data());
    std::size_t const tasks = rows < kShared ? 1 : static_cast<std::size_t>(num_threads());
    auto const for_own_rows = [&](std::size_t task, auto&& body) {
        auto const begin = static_cast<std::uint32_t>(count * task / tasks);
        auto const end = static_cast<std::uint32_t>(count * (task + 1) / tasks);
        for (std::size_t row = 0; row < rows; ++row) {
            if (numbers[row] - begin < end - begin) body(row, numbers[row]);
        }
    };
    // After the scan, ends[n + 1] is where the rows of n begin. Filling moves it to their end,
    // which is where those of n + 1 begin.
    runtime::run_tasks(tasks, [&](std::size_t task) {
        for_own_rows(task, [&](std::size_t, std::uint32_t number) { ++ends[number + 1]; });
    });
    runtime::scan(std::span(ends + 1, count));
    runtime::run_tasks(tasks, [&](std::size_t task) {
        for_own_rows(task, [&](std::size_t row, std::uint32_t number) {
            list[ends[number + 1]++] = static_cast<std::uint32_t>(row);
        });
    });
}

}  // namespace tensorhash::data
