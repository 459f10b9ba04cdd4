// Joins. A table numbers the distinct right rows, and lists hold the right rows of each number. A
// join looks up the left rows, counts their partners, and writes each left row's pairs in place.
#include "tensorhash/data/join.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/numbering.hpp"
#include "data/row_lists.hpp"
#include "map/arguments.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/table.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::data {
namespace {

constexpr std::array<std::pair<std::string_view, How>, 5> kNames{{{"inner", How::Inner},
                                                                  {"left", How::Left},
                                                                  {"full", How::Full},
                                                                  {"semi", How::Semi},
                                                                  {"anti", How::Anti}}};

constexpr std::uint32_t kNoKey = 0xffffffffu;

Tensor new_rows(std::size_t count) { return Tensor::empty(with_rows(count, {}), Dtype::Int64); }

std::int64_t* rows_in(Tensor& tensor) { return static_cast<std::int64_t*>(tensor.data()); }

/// The number of each left row's key, or kNoKey.
class LeftKeys {
public:
    explicit LeftKeys(std::size_t rows)
        : memory_(rows * (sizeof(std::uint32_t) + 1)), rows_(rows) {}

    std::uint32_t* numbers() { return reinterpret_cast<std::uint32_t*>(memory_.data()); }
    std::uint32_t const* numbers() const {
        return reinterpret_cast<std::uint32_t const*>(memory_.data());
    }
    unsigned char* mask() { return memory_.data() + rows_ * sizeof(std::uint32_t); }
    std::size_t rows() const { return rows_; }
    std::uint32_t operator[](std::size_t row) const { return numbers()[row]; }

private:
    runtime::Block memory_;
    std::size_t rows_;
};

/// The pairs of left rows if each key has at most one right row: that of the key's number. Without
/// branches, because whether a row has a partner cannot be predicted.
class SinglePairs {
public:
    SinglePairs(LeftKeys const& found, How how)
        : numbers_(found.numbers()), takes_partners_(how != How::Anti),
          takes_others_(how != How::Inner && how != How::Semi) {}

    std::size_t count(std::size_t begin, std::size_t end) const {
        std::size_t sum = 0;
        for (std::size_t row = begin; row < end; ++row) sum += takes(row);
        return sum;
    }
    void write(std::size_t begin, std::size_t end, std::int64_t* left, std::int64_t* right) const {
        std::size_t const pairs = count(begin, end);
        std::size_t at = 0;
        // Up to the last pair, a row without one writes where the next row does.
        for (std::size_t row = begin; at < pairs; ++row) {
            left[at] = static_cast<std::int64_t>(row);
            right[at] = static_cast<std::int32_t>(numbers_[row]);  // kNoKey becomes -1
            at += takes(row);
        }
    }

private:
    bool takes(std::size_t row) const {
        bool const has_partner = numbers_[row] != kNoKey;
        return (has_partner & takes_partners_) | (!has_partner & takes_others_);
    }

    std::uint32_t const* numbers_;
    bool takes_partners_;
    bool takes_others_;
};

}  // namespace

How how_from_name(std::string_view name) {
    std::string expected;
    for (auto const& [word, how] : kNames) {
        if (word == name) return how;
        expected += (expected.empty() ? "" : ", ") + std::string(word);
    }
    throw ValueError("how: expected one of " + expected + "; got " + std::string(name));
}

struct JoinIndex::Impl {
    Element element;
    table::Table table;
    RowLists lists;

    Impl(KeyRows const& keys, Element key) : element(std::move(key)), table(element, {}, 0) {
        LeftKeys found(keys.rows);
        table.activate(static_cast<table::Bytes>(keys.tensor.data()), keys.rows,
                       {found.numbers(), found.mask()});
        lists = RowLists(found.numbers(), keys.rows, table.size());
    }

    LeftKeys find(Tensor const& left) const {
        KeyRows const keys = check_keys(left, element, "left");
        LeftKeys found(keys.rows);
        table.find(static_cast<table::Bytes>(keys.tensor.data()), keys.rows,
                   {found.numbers(), found.mask()});
        return found;
    }

    std::size_t partners(std::uint32_t number) const {
        return number == kNoKey ? 0 : lists.count(number);
    }

    /// The pairs that a left row has in the result.
    std::size_t pairs(std::uint32_t number, How how) const {
        std::size_t const count = partners(number);
        switch (how) {
            case How::Inner:
                return count;
            case How::Left:
            case How::Full:
                return std::max<std::size_t>(count, 1);
            case How::Semi:
                return std::min<std::size_t>(count, 1);
            case How::Anti:
                break;
        }
        return count == 0 ? 1 : 0;
    }

    /// Right rows without a left partner, ascending.
    std::vector<std::uint32_t> right_only(LeftKeys const& found) const;
    JoinedRows join(LeftKeys const& found, How how) const;
    /// Calls allocate(pairs), then writes them.
    template <class Allocate>
    void write_pairs(LeftKeys const& found, How how, JoinedRows& out, Allocate&& allocate) const;
};

std::vector<std::uint32_t> JoinIndex::Impl::right_only(LeftKeys const& found) const {
    std::vector<bool> is_met(table.size());
    for (std::size_t row = 0; row < found.rows(); ++row) {
        if (found[row] != kNoKey) is_met[found[row]] = true;
    }
    std::vector<std::uint32_t> rows;
    for (std::size_t number = 0; number < is_met.size(); ++number) {
        if (is_met[number]) continue;
        for (std::size_t i = 0; i < lists.count(number); ++i) rows.push_back(lists.row(number, i));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
}

template <class Allocate>
void JoinIndex::Impl::write_pairs(LeftKeys const& found, How how, JoinedRows& out,
                                  Allocate&& allocate) const {
    runtime::Chunks const chunks = runtime::cut(found.rows(), runtime::kGrain);
    if (lists.is_identity()) {
        SinglePairs const all(found, how);
        runtime::select(
            chunks, [&](std::size_t begin, std::size_t end) { return all.count(begin, end); },
            allocate,
            [&](std::size_t begin, std::size_t end, std::size_t place) {
                all.write(begin, end, rows_in(out.left) + place, rows_in(out.right) + place);
            });
        return;
    }
    auto const count = [&](std::size_t begin, std::size_t end) {
        std::size_t sum = 0;
        for (std::size_t row = begin; row < end; ++row) sum += pairs(found[row], how);
        return sum;
    };
    auto const write = [&](std::size_t begin, std::size_t end, std::size_t place) {
        std::int64_t* left = rows_in(out.left) + place;
        std::int64_t* right = rows_in(out.right) + place;
        for (std::size_t row = begin; row < end; ++row) {
            std::size_t const wanted = pairs(found[row], how);
            std::size_t const there = partners(found[row]);
            for (std::size_t i = 0; i < wanted; ++i) {
                *left++ = static_cast<std::int64_t>(row);
                *right++ = i < there ? std::int64_t{lists.row(found[row], i)} : -1;
            }
        }
    };
    runtime::select(chunks, count, allocate, write);
}

JoinedRows JoinIndex::Impl::join(LeftKeys const& found, How how) const {
    std::vector<std::uint32_t> const rest =
        how == How::Full ? right_only(found) : std::vector<std::uint32_t>();
    JoinedRows out;
    std::size_t matched = 0;
    write_pairs(found, how, out, [&](std::size_t total) {
        matched = total;
        out = {new_rows(total + rest.size()), new_rows(total + rest.size())};
    });
    for (std::size_t i = 0; i < rest.size(); ++i) {
        rows_in(out.left)[matched + i] = -1;
        rows_in(out.right)[matched + i] = rest[i];
    }
    return out;
}

JoinIndex::JoinIndex(Tensor const& right) {
    KeyRows const keys = check_keys(right, "right");
    impl_ = std::make_unique<Impl>(keys, keys.element);
}
JoinIndex::JoinIndex(JoinIndex&&) noexcept = default;
JoinIndex& JoinIndex::operator=(JoinIndex&&) noexcept = default;
JoinIndex::~JoinIndex() = default;

Tensor JoinIndex::count(Tensor const& left) const {
    LeftKeys const found = impl_->find(left);
    Tensor out = new_rows(found.rows());
    runtime::for_ranges(found.rows(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            rows_in(out)[row] = static_cast<std::int64_t>(impl_->partners(found[row]));
        }
    });
    return out;
}

JoinedRows JoinIndex::join(Tensor const& left, How how) const {
    return impl_->join(impl_->find(left), how);
}

Tensor JoinIndex::first(Tensor const& left) const {
    LeftKeys const found = impl_->find(left);
    Tensor out = new_rows(found.rows());
    runtime::for_ranges(found.rows(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            rows_in(out)[row] =
                found[row] == kNoKey ? -1 : std::int64_t{impl_->lists.row(found[row], 0)};
        }
    });
    return out;
}

Matches JoinIndex::matches(Tensor const& left) const {
    LeftKeys const found = impl_->find(left);
    Matches out{new_rows(found.rows() + 1), {}};
    std::int64_t* const offsets = rows_in(out.offsets);
    auto const count = [&](std::size_t begin, std::size_t end) {
        std::size_t sum = 0;
        for (std::size_t row = begin; row < end; ++row) sum += impl_->partners(found[row]);
        return sum;
    };
    auto const allocate = [&](std::size_t total) {
        out.rows = new_rows(total);
        offsets[found.rows()] = static_cast<std::int64_t>(total);
    };
    auto const write = [&](std::size_t begin, std::size_t end, std::size_t place) {
        for (std::size_t row = begin; row < end; ++row) {
            offsets[row] = static_cast<std::int64_t>(place);
            std::size_t const there = impl_->partners(found[row]);
            for (std::size_t i = 0; i < there; ++i) {
                rows_in(out.rows)[place++] = impl_->lists.row(found[row], i);
            }
        }
    };
    runtime::select(runtime::cut(found.rows(), runtime::kGrain), count, allocate, write);
    return out;
}

Element const& JoinIndex::key_element() const noexcept { return impl_->element; }
std::int64_t JoinIndex::rows() const noexcept {
    return static_cast<std::int64_t>(impl_->lists.rows());
}
std::int64_t JoinIndex::distinct() const { return static_cast<std::int64_t>(impl_->table.size()); }

JoinedRows join(Tensor const& left, Tensor const& right, How how) {
    JoinIndex const index(right);
    return index.join(left, how);
}

}  // namespace tensorhash::data
