// RankBatch: a stable counting sort by rank, and the way back to the caller's rows. Over 400 lines:
// both ways share the places of rows.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cpu/rank_hash.hpp"
#include "map/get.hpp"
#include "ranks/repeats.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/rows.hpp"
#include "tensor/bools.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/ranks.hpp"
#include "tensorhash/step/bucket.hpp"

namespace tensorhash {

using map::CheckedBatch;
using map::KeysAndValues;

namespace {

void check_ranks(std::int64_t ranks) {
    if (ranks < 1 || ranks > kMaxRanks) {
        throw ValueError("ranks: expected 1 to " + std::to_string(kMaxRanks) + ", got " +
                         std::to_string(ranks));
    }
}

/// Keys that do not change while they are on their way: else a key could reach a rank that does
/// not own it.
CheckedBatch own(CheckedBatch batch) {
    batch.tensor = batch.tensor.clone();
    if (batch.tensor.dtype() == Dtype::Bool) {
        canonicalize_bools(static_cast<unsigned char*>(batch.tensor.data()), batch.tensor.bytes());
    }
    return batch;
}

void require_rows(Tensor const& tensor, std::size_t rows, char const* argument) {
    if (tensor.shape() != Shape{static_cast<std::int64_t>(rows)}) {
        throw ValueError(std::string(argument) + ": expected shape (" + std::to_string(rows) +
                         ",), got " + to_string(tensor.shape()));
    }
}

/// The first rows of a table's buffer.
Tensor first_rows(Tensor const& buffer, std::size_t rows) {
    Shape shape = buffer.shape();
    shape[0] = static_cast<std::int64_t>(rows);
    return Tensor::borrow(buffer.data(), std::move(shape), buffer.dtype(), buffer.owner());
}

}  // namespace

struct RankBatch::Impl {
    Element key;
    std::vector<Element> elements;
    std::int64_t ranks;
    std::optional<map::Defaults> defaults = {};

    std::size_t rows = 0;              // of the caller
    std::size_t sent = 0;              // the rows that travel: fewer if equal keys were joined
    std::vector<Tensor> columns = {};  // keys, then values, of the rows that travel
    Tensor inverse = {};               // int32 [rows]: the row that travels for each; if joined
    Tensor first = {};                 // bool [rows]: the first row of its key; if joined

    runtime::Block owners = {};  // uint16 [sent]
    Tensor order = {};           // int32 [sent]: the row at each place
    Tensor places = {};          // int32 [sent]: the place of each row
    std::vector<std::int64_t> counts = {};

    /// Without rows, for the same tables.
    Impl untaken() const { return {key, elements, ranks}; }
    bool is_joined() const { return inverse.dtype() != Dtype::Undefined; }
    /// Null if the rows were not joined.
    bool const* is_first() const { return static_cast<bool const*>(first.data()); }
    void take(KeysAndValues batch);
    /// The same, but joins equal keys if there are many.
    void take_once(KeysAndValues batch, std::vector<Reduce> const& reduce);
    void group();
    void join(KeysAndValues const& batch, std::vector<Reduce> const& reduce);
    /// The grouped places of a rank's keys; empty for rank -1.
    struct Places {
        std::size_t begin, end;
        std::size_t count() const { return end - begin; }
    };
    Places places_of(std::int64_t rank) const;
    /// Where values of found keys lie: for table::gather_either(), received rows and own ones.
    struct Picks {
        Tensor rows;            // uint32 [rows] as int32: of each caller's row, or kNotFound
        std::size_t found = 0;  // of the rows that other ranks answered
    };
    Picks picks_of(Tensor const& found, OwnRows const& own, Places own_places) const;
    void require_columns(std::vector<Tensor> const& columns, std::size_t rows,
                         char const* argument) const;

    std::uint16_t const* owner_of_row() const {
        return reinterpret_cast<std::uint16_t const*>(owners.data());
    }

    /// Calls body(row, sent row, place) for the caller's rows, in parallel.
    template <class Body>
    void for_rows(Body&& body) const {
        auto const* const place = static_cast<std::uint32_t const*>(places.data());
        auto const* const row_sent = static_cast<std::uint32_t const*>(inverse.data());
        bool const joined = is_joined();
        runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                std::size_t const source = joined ? row_sent[row] : row;
                body(row, source, std::size_t{place[source]});
            }
        });
    }
};

void RankBatch::Impl::group() {
    auto const* const keys = static_cast<unsigned char const*>(columns[0].data());
    auto const groups = static_cast<std::size_t>(ranks);
    runtime::Chunks const chunks = runtime::cut(sent, std::max(runtime::kGrain, groups));
    owners = runtime::Block(sent * sizeof(std::uint16_t));
    auto* const owner = reinterpret_cast<std::uint16_t*>(owners.data());
    order = Tensor::empty(with_rows(sent, {}), Dtype::Int32);
    places = Tensor::empty(with_rows(sent, {}), Dtype::Int32);
    auto* const row_at = static_cast<std::uint32_t*>(order.data());
    auto* const place = static_cast<std::uint32_t*>(places.data());

    std::vector<std::uint32_t> begins(chunks.count * groups);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        cpu::hash_ranks(keys, key, static_cast<std::uint64_t>(ranks), begin, end, owner);
        std::vector<std::uint32_t> count(groups);  // neighbouring chunks share cache lines
        for (std::size_t row = begin; row < end; ++row) {
            ++count[owner[row]];
        }
        std::copy_n(count.data(), groups, begins.data() + chunk * groups);
    });
    runtime::scan_groups(std::span(begins), groups);
    counts.assign(groups, 0);
    for (std::size_t rank = 0; chunks.count != 0 && rank < groups; ++rank) {
        std::size_t const end = rank + 1 < groups ? begins[rank + 1] : sent;
        counts[rank] = static_cast<std::int64_t>(end - begins[rank]);
    }
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        auto const* const from = begins.data() + chunk * groups;
        std::vector<std::uint32_t> next(from, from + groups);
        for (std::size_t row = begin; row < end; ++row) {
            std::uint32_t const at = next[owner[row]]++;
            row_at[at] = static_cast<std::uint32_t>(row);
            place[row] = at;
        }
    });
}

void RankBatch::Impl::take(KeysAndValues batch) {
    rows = sent = batch.keys.rows;
    columns = {own(std::move(batch.keys)).tensor};
    for (CheckedBatch& column : batch.values) {
        columns.push_back(std::move(column.tensor));
    }
    group();
}

void RankBatch::Impl::take_once(KeysAndValues batch, std::vector<Reduce> const& reduce) {
    ranks::has_many_repeats(batch.keys, key) ? join(batch, reduce) : take(std::move(batch));
}

void RankBatch::Impl::join(KeysAndValues const& batch, std::vector<Reduce> const& reduce) {
    std::vector<Tensor> values;
    for (CheckedBatch const& column : batch.values) {
        values.push_back(column.tensor);
    }
    HashMap scratch(Capacity{0}, key, values.empty() ? std::vector<Element>{} : elements);
    Located located = values.empty() ? scratch.activate(batch.keys.tensor)
                                     : scratch.accumulate(batch.keys.tensor, values, reduce);
    sent = static_cast<std::size_t>(scratch.size());
    inverse = std::move(located.indices);
    first = std::move(located.mask);
    columns = {first_rows(scratch.key_tensor(), sent)};
    for (Tensor const& buffer : scratch.value_tensors()) {
        columns.push_back(first_rows(buffer, sent));
    }
    rows = batch.keys.rows;
    group();
}

RankBatch::Impl::Places RankBatch::Impl::places_of(std::int64_t rank) const {
    if (rank == -1) {
        return {sent, sent};
    }
    if (rank < 0 || rank >= ranks) {
        throw IndexError("rank: expected 0 to " + std::to_string(ranks - 1) + ", got " +
                         std::to_string(rank));
    }
    auto const count = counts.begin() + rank;
    auto const begin = static_cast<std::size_t>(std::accumulate(counts.begin(), count, 0LL));
    return {begin, begin + static_cast<std::size_t>(*count)};
}

RankBatch::Impl::Picks RankBatch::Impl::picks_of(Tensor const& found, OwnRows const& own,
                                                 Places own_places) const {
    auto const is_found = found.as<bool>();
    Tensor ranked = Tensor::empty(with_rows(sent, {}), Dtype::Int32);
    auto* const pick = static_cast<std::uint32_t*>(ranked.data());
    Picks made;
    // Own places lie between those of the ranks before and after.
    auto const place_of = [own_places](std::size_t answer) {
        return answer < own_places.begin ? answer : answer + own_places.count();
    };
    runtime::select(
        runtime::cut(is_found.size(), runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            auto const from = is_found.begin();
            return static_cast<std::size_t>(std::count(from + static_cast<std::ptrdiff_t>(begin),
                                                       from + static_cast<std::ptrdiff_t>(end),
                                                       true));
        },
        [&](std::size_t total) { made.found = total; },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            for (std::size_t at = begin; at < end; ++at) {
                pick[place_of(at)] =
                    is_found[at] ? static_cast<std::uint32_t>(place++) : step::kNotFound;
            }
        });
    auto const index =
        own.rank == -1
            ? std::span<std::int32_t const>{}
            : own.indices.as<std::int32_t>().subspan(static_cast<std::size_t>(own.begin));
    runtime::for_ranges(
        own_places.count(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t at = begin; at < end; ++at) {
                pick[own_places.begin + at] =
                    index[at] < 0 ? step::kNotFound
                                  : static_cast<std::uint32_t>(index[at]) | table::kOther;
            }
        });
    made.rows = Tensor::empty(with_rows(rows, {}), Dtype::Int32);
    auto* const picked = static_cast<std::uint32_t*>(made.rows.data());
    for_rows([&](std::size_t row, std::size_t, std::size_t place) { picked[row] = pick[place]; });
    return made;
}

RankBatch::RankBatch(Element key, std::vector<Element> values, std::int64_t ranks) {
    check_ranks(ranks);
    map::check_elements(key, values);
    impl_ = std::make_unique<Impl>(Impl{std::move(key), std::move(values), ranks});
}

RankBatch::RankBatch(RankBatch&&) noexcept = default;
RankBatch& RankBatch::operator=(RankBatch&&) noexcept = default;
RankBatch::~RankBatch() = default;

void RankBatch::take(Tensor const& keys, std::vector<Tensor> const& columns) {
    Impl taken = impl_->untaken();
    taken.take(map::check_keys_and_values(keys, taken.key, columns, taken.elements));
    *impl_ = std::move(taken);
}

void RankBatch::take_joined(Tensor const& keys, std::vector<Tensor> const& columns,
                            std::vector<Reduce> const& reduce) {
    Impl taken = impl_->untaken();
    KeysAndValues batch = map::check_keys_and_values(keys, taken.key, columns, taken.elements);
    bool const only_keys = columns.empty() && reduce.empty();
    std::vector<Reduce> const plain =
        only_keys ? reduce : map::resolve_reduce(reduce, taken.elements, batch);
    taken.take_once(std::move(batch), plain);
    *impl_ = std::move(taken);
}

void RankBatch::take_question(Tensor const& keys, std::vector<Tensor> const& defaults) {
    Impl taken = impl_->untaken();
    KeysAndValues batch{map::check_batch(keys, taken.key, "keys"), {}};
    taken.defaults.emplace(taken.elements, defaults, batch.keys.rows);
    taken.take_once(std::move(batch), {});
    *impl_ = std::move(taken);
}

std::vector<std::int64_t> const& RankBatch::counts() const noexcept { return impl_->counts; }

Tensor RankBatch::places() const {
    if (!impl_->is_joined()) {
        return impl_->places;
    }
    Tensor out = Tensor::empty(with_rows(impl_->rows, {}), Dtype::Int32);
    auto* const places = static_cast<std::uint32_t*>(out.data());
    impl_->for_rows([&](std::size_t row, std::size_t, std::size_t at) {
        places[row] = static_cast<std::uint32_t>(at);
    });
    return out;
}

void RankBatch::pack(std::int64_t column, std::int64_t begin, std::int64_t end, Tensor& to,
                     std::int64_t at) const {
    if (column < 0 || column >= static_cast<std::int64_t>(impl_->columns.size())) {
        throw IndexError("column: expected less than " + std::to_string(impl_->columns.size()) +
                         ", the number of columns, got " + std::to_string(column));
    }
    pack_rows(impl_->columns[static_cast<std::size_t>(column)], impl_->order, begin, end, to, at);
}

RankAnswers RankBatch::answers(Tensor const& grouped, bool marked) const {
    require_rows(grouped, impl_->sent, "grouped");
    RankAnswers out{Tensor::empty(with_rows(impl_->rows, {}), Dtype::Int64),
                    Tensor::empty(with_rows(impl_->rows, {}), Dtype::Bool)};
    auto* const place = static_cast<std::int64_t*>(out.places.data());
    auto* const mask = static_cast<bool*>(out.mask.data());
    auto const answer = grouped.as<std::int32_t>();
    auto const* const owner = impl_->owner_of_row();
    auto const on_owner = [owner](std::size_t sent, std::int32_t index) {
        return std::int64_t{owner[sent]} << 32 | index;
    };
    if (!marked) {
        impl_->for_rows([&](std::size_t row, std::size_t sent, std::size_t at) {
            mask[row] = answer[at] >= 0;
            place[row] = answer[at] < 0 ? -1 : on_owner(sent, answer[at]);
        });
        return out;
    }
    auto const* const first = impl_->is_first();
    impl_->for_rows([&](std::size_t row, std::size_t sent, std::size_t at) {
        std::int32_t const given = answer[at];
        mask[row] = given >= 0 && (first == nullptr || first[row]);
        place[row] = on_owner(sent, given < 0 ? ~given : given);
    });
    return out;
}

Tensor RankBatch::mask(Tensor const& grouped, bool only_first) const {
    require_rows(grouped, impl_->sent, "grouped");
    Tensor out = Tensor::empty(with_rows(impl_->rows, {}), Dtype::Bool);
    auto* const mask = static_cast<bool*>(out.data());
    auto const answer = grouped.as<bool>();
    auto const* const first = only_first ? impl_->is_first() : nullptr;
    impl_->for_rows([&](std::size_t row, std::size_t, std::size_t at) {
        mask[row] = answer[at] && (first == nullptr || first[row]);
    });
    return out;
}

void RankBatch::Impl::require_columns(std::vector<Tensor> const& columns_given, std::size_t count,
                                      char const* argument) const {
    std::string const given = argument;
    if (columns_given.size() != elements.size()) {
        throw ValueError(given + ": expected " + std::to_string(elements.size()) +
                         " columns, got " + std::to_string(columns_given.size()));
    }
    for (std::size_t i = 0; i < columns_given.size(); ++i) {
        Tensor const& column = columns_given[i];
        Shape const wanted = with_rows(count, elements[i].shape);
        if (column.dtype() != elements[i].dtype || column.shape() != wanted ||
            !column.is_contiguous()) {
            throw ValueError(given + "[" + std::to_string(i) + "]: expected contiguous " +
                             std::string(name(elements[i].dtype)) + " " + to_string(wanted) +
                             ", got " + std::string(name(column.dtype())) + " " +
                             to_string(column.shape()));
        }
    }
}

std::vector<Tensor> RankBatch::values(std::vector<Tensor> const& received, Tensor const& found,
                                      OwnRows const& own) const {
    Impl::Places const own_places = impl_->places_of(own.rank);
    require_rows(found, impl_->sent - own_places.count(), "found");
    if (own.rank != -1) {
        auto const count = static_cast<std::int64_t>(own_places.count());
        if (own.begin < 0 || own.indices.size() - own.begin < count) {
            throw ValueError("own indices: expected " + std::to_string(count) + " from " +
                             std::to_string(own.begin) + " on, got " +
                             std::to_string(own.indices.size()) + " in all");
        }
        std::size_t const capacity =
            own.columns.empty() ? 0 : static_cast<std::size_t>(own.columns[0].shape().at(0));
        impl_->require_columns(own.columns, capacity, "own columns");
    }
    Impl::Picks const picks = impl_->picks_of(found, own, own_places);
    impl_->require_columns(received, picks.found, "received");
    std::vector<Tensor> out = map::empty_rows(impl_->elements, impl_->rows);
    for (std::size_t i = 0; i < out.size(); ++i) {
        map::FillRows const* const fill = impl_->defaults ? impl_->defaults->of(i) : nullptr;
        backend::DefaultRows const missing =
            fill == nullptr ? backend::DefaultRows{} : fill->rows();
        void const* const mine = own.rank == -1 ? nullptr : own.columns[i].data();
        table::gather_either(static_cast<unsigned char*>(out[i].data()),
                             static_cast<unsigned char const*>(received[i].data()),
                             static_cast<unsigned char const*>(mine), impl_->elements[i].bytes(),
                             static_cast<std::uint32_t const*>(picks.rows.data()), impl_->rows,
                             missing.data, missing.step);
    }
    return out;
}

Tensor rank_of_keys(Tensor const& keys, Element const& key, std::int64_t ranks) {
    check_ranks(ranks);
    CheckedBatch const batch = map::check_batch(keys, key, "keys");
    Tensor out = Tensor::empty(with_rows(batch.rows, {}), Dtype::Int64);
    auto* const rank = static_cast<std::int64_t*>(out.data());
    constexpr std::size_t kBlock = 4096;
    runtime::for_ranges(batch.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        std::array<std::uint16_t, kBlock> block;
        for (std::size_t at = begin; at < end; at += kBlock) {
            std::size_t const rows = std::min(kBlock, end - at);
            cpu::hash_ranks(batch.data() + at * key.bytes(), key, static_cast<std::uint64_t>(ranks),
                            0, rows, block.data());
            std::copy_n(block.data(), rows, rank + at);
        }
    });
    return out;
}

}  // namespace tensorhash
