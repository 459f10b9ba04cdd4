// RankBatch: a stable counting sort by rank, and the way back to the caller's rows.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cpu/rank_hash.hpp"
#include "map/get.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/limits.hpp"
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

/// Whether at least about a third of the rows repeat a key, judged by runs of rows from the whole
/// batch. A larger batch needs more of them, because its repeats lie farther apart.
bool has_many_repeats(CheckedBatch const& keys, Element const& element) {
    constexpr std::size_t kRun = 32;
    double const root = std::sqrt(static_cast<double>(keys.rows));
    std::size_t const runs = (4096 + static_cast<std::size_t>(16 * root)) / kRun;
    std::size_t const sampled = std::min(keys.rows, runs * kRun);
    HashMap distinct(Capacity{static_cast<std::int64_t>(sampled)}, element, {});
    if (sampled == keys.rows) {
        distinct.activate(keys.tensor);
    } else {
        Tensor sample = Tensor::empty(with_rows(sampled, element.shape), element.dtype);
        std::size_t const bytes = kRun * element.bytes();
        auto* const to = static_cast<unsigned char*>(sample.data());
        for (std::size_t run = 0; run < runs; ++run) {
            std::size_t const first = run * (keys.rows - kRun) / (runs - 1);
            std::copy_n(keys.data() + first * element.bytes(), bytes, to + run * bytes);
        }
        distinct.activate(sample);
    }
    auto const repeats = sampled - static_cast<std::size_t>(distinct.size());
    // If each key comes d times, s of n rows hold about (d - 1) s^2 / 2n pairs of equal keys.
    return static_cast<double>(repeats) * 4.0 * static_cast<double>(keys.rows) >
           static_cast<double>(sampled) * static_cast<double>(sampled);
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

    bool is_joined() const { return inverse.dtype() == Dtype::Int32; }
    /// Null if the rows were not joined.
    bool const* is_first() const { return static_cast<bool const*>(first.data()); }
    void take(KeysAndValues batch);
    /// The same, but joins equal keys if there are many.
    void take_once(KeysAndValues batch, std::vector<Reduce> const& reduce);
    void group();
    void join(KeysAndValues const& batch, std::vector<Reduce> const& reduce);
    Tensor picks_of(Tensor const& found) const;

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
    has_many_repeats(batch.keys, key) ? join(batch, reduce) : take(std::move(batch));
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

/// uint32 [rows] as int32: the row of `received` for each of the caller's rows, or kNotFound.
Tensor RankBatch::Impl::picks_of(Tensor const& found) const {
    auto const* const is_found = static_cast<unsigned char const*>(found.data());
    auto const chunks = runtime::cut(sent, runtime::kGrain);
    Tensor ranked = Tensor::empty(with_rows(sent, {}), Dtype::Int32);
    auto* const rank = static_cast<std::uint32_t*>(ranked.data());
    std::size_t all = 0;
    runtime::select(
        chunks,
        [&](std::size_t begin, std::size_t end) {
            std::size_t count = 0;
            for (std::size_t at = begin; at < end; ++at) {
                count += is_found[at];
            }
            return count;
        },
        [&](std::size_t total) { all = total; },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            for (std::size_t at = begin; at < end; ++at) {
                rank[at] = is_found[at] != 0 ? static_cast<std::uint32_t>(place) : step::kNotFound;
                place += is_found[at];
            }
        });
    if (all == sent && !is_joined()) {
        return places;  // of the rows that travel, which are the caller's
    }
    Tensor out = Tensor::empty(with_rows(rows, {}), Dtype::Int32);
    auto* const pick = static_cast<std::uint32_t*>(out.data());
    for_rows([&](std::size_t row, std::size_t, std::size_t place) { pick[row] = rank[place]; });
    return out;
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
    impl_->take(map::check_keys_and_values(keys, impl_->key, columns, impl_->elements));
}

void RankBatch::take_joined(Tensor const& keys, std::vector<Tensor> const& columns,
                            std::vector<Reduce> const& reduce) {
    KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, columns, impl_->elements);
    std::vector<Reduce> const plain =
        columns.empty() ? reduce : map::resolve_reduce(reduce, impl_->elements, batch);
    impl_->take_once(std::move(batch), plain);
}

void RankBatch::take_question(Tensor const& keys, std::vector<Tensor> const& defaults) {
    KeysAndValues batch{map::check_batch(keys, impl_->key, "keys"), {}};
    impl_->defaults.emplace(impl_->elements, defaults, batch.keys.rows);
    impl_->take_once(std::move(batch), {});
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
        throw IndexError("column: expected 0 to " + std::to_string(impl_->columns.size() - 1) +
                         ", got " + std::to_string(column));
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

std::vector<Tensor> RankBatch::values(std::vector<Tensor> const& received,
                                      Tensor const& found) const {
    require_rows(found, impl_->sent, "found");
    Tensor const picks = impl_->picks_of(found);
    std::vector<Tensor> out = map::empty_rows(impl_->elements, impl_->rows);
    for (std::size_t i = 0; i < out.size(); ++i) {
        map::FillRows const* const fill = impl_->defaults ? impl_->defaults->of(i) : nullptr;
        backend::DefaultRows const missing =
            fill == nullptr ? backend::DefaultRows{} : fill->rows();
        table::gather_rows(static_cast<unsigned char*>(out[i].data()),
                           static_cast<unsigned char const*>(received[i].data()),
                           impl_->elements[i].bytes(),
                           static_cast<std::uint32_t const*>(picks.data()), impl_->rows,
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
