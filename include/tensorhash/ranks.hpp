// RankBatch: a batch on its way to the processes (ranks) that own its keys, and back.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/export.hpp"
#include "tensorhash/reduce.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// The most ranks that keys can have as owners.
inline constexpr std::int64_t kMaxRanks = std::int64_t{1} << 16;

/// int64 [N]: the rank that owns each key, 0 to ranks - 1, by the rule "murmur64-v1". Checkpoints
/// name the rule, so it never changes.
TH_API Tensor rank_of_keys(Tensor const& keys, Element const& key, std::int64_t ranks);

/// Places and masks of a batch, in the order of its rows.
struct RankAnswers {
    Tensor places;  ///< int64 [N]: rank << 32 | index on the rank; -1 if there is none
    Tensor mask;    ///< bool [N]
};

/// Where the values of keys lie that stay on their rank.
struct OwnRows {
    std::int64_t rank = -1;            ///< none
    Tensor indices = {};               ///< int32: the row of each key in `columns`, or -1
    std::int64_t begin = 0;            ///< where the indices of the rank's keys begin
    std::vector<Tensor> columns = {};  ///< on the CPU, contiguous; rows are not checked
};

/// The rows of a batch grouped by the rank that owns their key. Rows of one rank keep their order.
class TH_API RankBatch {
public:
    /// Arguments are checked as a table with these elements checks them.
    RankBatch(Element key, std::vector<Element> values, std::int64_t ranks);
    RankBatch(RankBatch&&) noexcept;
    RankBatch& operator=(RankBatch&&) noexcept;
    ~RankBatch();

    /// Takes keys with one row in each of `columns`, and groups them. What was taken before is
    /// dropped, or stays if this throws.
    void take(Tensor const& keys, std::vector<Tensor> const& columns);
    /// The same, but if many keys are equal, one row per key travels: `reduce` combines the values
    /// of equal keys as HashMap::accumulate() does. Counts and truths become sums and extremes, so
    /// that all rows are alike. Without columns, `reduce` is empty.
    void take_joined(Tensor const& keys, std::vector<Tensor> const& columns,
                     std::vector<Reduce> const& reduce);
    /// Takes keys for values(), and what absent ones read as: see HashMap::get().
    void take_question(Tensor const& keys, std::vector<Tensor> const& defaults);

    /// The number of rows for each rank.
    std::vector<std::int64_t> const& counts() const noexcept;
    /// int32 [N]: where each row is among the grouped rows.
    Tensor places() const;
    /// Copies the grouped rows [begin, end) of a column to `to`, from row `at` on. Column 0 is the
    /// keys.
    void pack(std::int64_t column, std::int64_t begin, std::int64_t end, Tensor& to,
              std::int64_t at) const;

    /// Answers of the owners, int32 and grouped. A negative one means absent, place -1. If
    /// `marked`, it means a mask of false for the place ~answer.
    RankAnswers answers(Tensor const& grouped, bool marked) const;
    /// bool [N] from grouped bools. With `only_first`, rows that repeat a key are false.
    Tensor mask(Tensor const& grouped, bool only_first) const;
    /// One tensor per column: the rows of the keys with a set bit in `found`, which is grouped, and
    /// defaults for the others. `received` has only the rows of found keys. Keys of rank `own.rank`
    /// are read where they lie, and neither `received` nor `found` has rows for them.
    std::vector<Tensor> values(std::vector<Tensor> const& received, Tensor const& found,
                               OwnRows const& own = {}) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// What an owner does with the rows that arrived.

/// int32 [N]: the index where the mask is true, else ~index.
TH_API Tensor marked_indices(Tensor const& indices, Tensor const& mask);
/// int32: the rows with an index of at least 0 (found), or with a negative one.
TH_API Tensor rows_where(Tensor const& indices, bool found);
/// The number of true bools in each group of `counts` rows.
TH_API std::vector<std::int64_t> count_true(Tensor const& mask,
                                            std::vector<std::int64_t> const& counts);
/// Copies from[rows[i]] for begin <= i < end to the rows of `to` from `at` on. Tensors are on the
/// CPU and contiguous; `rows` is int32. Each of its rows must exist: that is not checked.
TH_API void pack_rows(Tensor const& from, Tensor const& rows, std::int64_t begin, std::int64_t end,
                      Tensor& to, std::int64_t at);
/// Copies from[begin, end) to the rows of `to` from `at` on.
TH_API void copy_rows(Tensor const& from, std::int64_t begin, std::int64_t end, Tensor& to,
                      std::int64_t at);

/// Memory of one process that others on the machine can read. Only Linux has it.
class TH_API SharedMemory {
public:
    /// Four numbers for another process.
    using Message = std::array<std::int64_t, 4>;
    /// The bytes of a box, and how many messages it keeps. A sender must know that message n - 8
    /// was taken before it posts message n.
    static constexpr std::int64_t kBoxBytes = 320;
    static constexpr std::uint32_t kKept = 8;

    /// Memory of zeros under a name. Throws std::bad_alloc, or SystemError where there is none.
    SharedMemory(std::int64_t bytes, std::string const& name);
    /// The memory that `process` has open as `file`, to read. Throws SystemError unless it has this
    /// name and this process may open it.
    SharedMemory(std::int64_t process, std::int64_t file, std::string const& name);

    /// What another process needs, beside the name, while this object lives. -1 if opened to read.
    std::int64_t file() const noexcept;
    std::int64_t bytes() const noexcept;
    /// Rows from byte `at` on. The tensor keeps the memory.
    Tensor rows(std::int64_t at, std::int64_t rows, Element const& element) const;

    /// Adds a message to a box. The memory is an array of boxes, each for one taker.
    void post(std::int64_t box, Message const& message);
    /// Waits up to `seconds` for message `number` of a box, counted from 0 modulo 2^32.
    std::optional<Message> take(std::int64_t box, std::uint32_t number, double seconds) const;
    /// Tells a box's taker how many of its own messages this process has taken.
    void set_taken(std::int64_t box, std::uint32_t messages);
    std::uint32_t taken(std::int64_t box) const;

private:
    struct Mapping;
    unsigned char* box_at(std::int64_t box) const;
    std::shared_ptr<Mapping> mapping_;
};

}  // namespace tensorhash
